//! The client's side: a small client codec, independent of the crate, after RFC 6455 §5.2.
//! Frames → masked bytes; the server's bytes → frames.
//! Uses nothing of the crate.
//! Changed here: only if it differs from RFC 6455.

/// A client frame before masking.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) fin: bool,
    pub(crate) rsv1: bool,
    pub(crate) opcode: u8,
    pub(crate) key: [u8; 4],
    pub(crate) payload: Vec<u8>,
}

impl Sent {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let flags =
            if self.fin { 0b1000_0000 } else { 0 } | if self.rsv1 { 0b0100_0000 } else { 0 };
        out.push(flags | self.opcode);
        let length = self.payload.len();
        if length < 126 {
            out.push(0b1000_0000 | length as u8);
        } else if length < 65_536 {
            out.push(0b1000_0000 | 126);
            out.extend([(length >> 8) as u8, length as u8]);
        } else {
            out.push(0b1000_0000 | 127);
            out.extend((0..8).rev().map(|place| (length as u64 >> (8 * place)) as u8));
        }
        out.extend(self.key);
        out.extend(self.payload.iter().enumerate().map(|(at, byte)| byte ^ self.key[at % 4]));
    }
}

/// A server frame as a client decodes it.
#[derive(Debug, PartialEq)]
pub(crate) struct Received {
    pub(crate) fin: bool,
    pub(crate) rsv1: bool,
    pub(crate) opcode: u8,
    pub(crate) payload: Vec<u8>,
}

/// All frames of `bytes`; `None` unless they fill it exactly and follow the rules for servers (RFC 6455 §5).
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Received>> {
    let mut frames = Vec::new();
    let mut rest = bytes.iter().copied();
    while let Some(first) = rest.next() {
        let second = rest.next()?;
        let mut number = |bytes: u32| {
            (0..bytes).try_fold(0u64, |number, _| Some(number << 8 | u64::from(rest.next()?)))
        };
        let length = match second {
            0..126 => second.into(),
            126 => number(2).filter(|length| *length >= 126)?,
            127 => number(8).filter(|length| *length >= 65_536)?,
            _ => return None, // a server must not mask
        };
        let payload: Vec<u8> = rest.by_ref().take(length as usize).collect();
        if payload.len() as u64 != length || first & 0b0011_0000 != 0 {
            return None;
        }
        let (fin, rsv1) = (first & 0b1000_0000 != 0, first & 0b0100_0000 != 0);
        frames.push(Received { fin, rsv1, opcode: first & 0b1111, payload });
    }
    Some(frames)
}
