//! A frame or message of which only a part has arrived (RFC 6455 §5.4).
//! The next bytes, in any split → a finished message, or more to wait for.
//! Uses `header`, `mask`, `text`; never reserves memory for bytes that have not arrived.
//! Changed here: assembling fragments. Frames that arrive whole are `reader`.

use std::borrow::Cow;

use super::{Arrived, CompleteFrame, CompressedPayload, Input, Limits, PayloadSource};
use crate::header::{self, Allowed, FrameHeader};
use crate::text::Text;
use crate::{Failure, Opcode, Pool, frame, mask};

/// The state of the frame and the message that are arriving; boxed by the reader while they last.
#[derive(Debug, Default)]
pub(super) struct Partial {
    /// The frame whose payload is arriving; `None` while its header is incomplete.
    frame: Option<Frame>,
    header: [u8; HEADER_BYTES_MAX],
    header_bytes: usize,
    /// The open message, from its first frame's header to its last frame's end.
    message: Option<Message>,
    /// The payload so far of a control frame, which may occur between fragments.
    control: Vec<u8>,
}

#[derive(Debug)]
struct Frame {
    fin: bool,
    opcode: Opcode,
    /// Its first byte belongs to the next payload byte.
    mask: [u8; 4],
    bytes_left: usize,
}

#[derive(Debug)]
struct Message {
    body: Body,
    /// Payload bytes of all frames whose headers have been read.
    bytes: usize,
    fragments: u32,
}

#[derive(Debug)]
enum Body {
    Text(Text),
    Binary(Vec<u8>),
    /// Still compressed, with the opcode of the first frame.
    Deflated(Opcode, Vec<u8>),
}

impl Partial {
    /// Takes bytes of `input` up to the end of the frame at most.
    pub(super) fn advance<const FROM_CLIENT: bool>(
        &mut self,
        compression_agreed: bool,
        input: &mut Input<'_>,
        pool: &mut Pool,
        limits: &Limits,
    ) -> Result<Option<Arrived>, Failure> {
        if self.frame.is_none()
            && !self.read_header::<FROM_CLIENT>(compression_agreed, input, limits)?
        {
            return Ok(None);
        }
        let frame = self.frame.as_mut().expect("read_header found one");
        let piece = input.take(frame.bytes_left);
        frame.bytes_left -= piece.len();
        let key = frame.mask;
        frame.mask = mask::advance(key, piece.len());
        let fin = frame.fin;
        let opcode = frame.opcode;
        let bytes_left = frame.bytes_left;
        match &mut self.message {
            Some(message) if !opcode.is_control() => message.body.push(piece, key)?,
            _ => mask::unmask_onto(piece, key, &mut self.control),
        }
        if bytes_left > 0 {
            return Ok(None);
        }
        self.frame = None;
        if opcode.is_control() {
            pool.bytes.clear();
            pool.bytes.append(&mut self.control);
            let source = PayloadSource::PoolBytes;
            return Ok(Some(Arrived::Plain(CompleteFrame { opcode, source })));
        }
        match self.message.take_if(|_| fin) {
            Some(message) => message.body.finish(pool).map(Some),
            None => Ok(None),
        }
    }

    /// Whether no frame and no message is incomplete, so that this can be dropped.
    pub(super) fn is_idle(&self) -> bool {
        self.frame.is_none() && self.message.is_none() && self.header_bytes == 0
    }

    /// The bytes that bring a new reader to this point: one frame with all that came of the message, a control frame that has begun
    /// behind it, a header that is incomplete.
    pub(super) fn replay(&self, into: &mut Vec<u8>) {
        let of_message = self.frame.as_ref().filter(|frame| !frame.opcode.is_control());
        if let Some(message) = &self.message {
            let bytes = message.body.bytes();
            let fin = of_message.is_some_and(|frame| frame.fin);
            let missing = of_message.map_or(Missing::default(), Missing::of);
            replay_frame(message.body.opcode(), fin, &bytes, missing, into);
        }
        if let Some(frame) = self.frame.as_ref().filter(|frame| frame.opcode.is_control()) {
            let opcode = FirstOpcode { opcode: frame.opcode, rsv1: false };
            replay_frame(opcode, true, &self.control, Missing::of(frame), into);
        }
        into.extend_from_slice(&self.header[..self.header_bytes]);
    }

    /// The heap memory this holds without its own box.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        let message = self.message.as_ref().map_or(0, |message| match &message.body {
            Body::Text(text) => text.heap_bytes(),
            Body::Binary(bytes) | Body::Deflated(_, bytes) => bytes.capacity(),
        });
        message + self.control.capacity()
    }

    /// Reads the header of the next frame; when it is complete, sets `frame` and `message` and returns true.
    fn read_header<const FROM_CLIENT: bool>(
        &mut self,
        compression_agreed: bool,
        input: &mut Input<'_>,
        limits: &Limits,
    ) -> Result<bool, Failure> {
        let earlier = self.header_bytes;
        let unread = input.rest();
        let rest = &unread[..unread.len().min(HEADER_BYTES_MAX - earlier)];
        let available = earlier + rest.len();
        self.header[earlier..available].copy_from_slice(rest);
        let message_bytes = self.message.as_ref().map_or(0, |message| message.bytes);
        let allowed = Allowed {
            rsv1: compression_agreed,
            continuation: self.message.is_some(),
            payload_bytes: limits.message_bytes_max.saturating_sub(message_bytes),
            message_bytes_max: limits.message_bytes_max,
        };
        match header::parse::<FROM_CLIENT>(&self.header[..available], allowed)? {
            Some(header) => {
                input.take(header.header_bytes - earlier);
                self.header_bytes = 0;
                self.start_frame(header, limits)?;
                Ok(true)
            }
            None => {
                input.take(available - earlier);
                self.header_bytes = available;
                Ok(false)
            }
        }
    }

    fn start_frame(&mut self, header: FrameHeader, limits: &Limits) -> Result<(), Failure> {
        let FrameHeader { fin, opcode, mask, payload_bytes, .. } = header;
        self.frame = Some(Frame { fin, opcode, mask, bytes_left: payload_bytes });
        if opcode.is_control() {
            return Ok(());
        }
        let message = self.message.get_or_insert_with(|| Message::new(&header));
        if message.fragments >= limits.fragments_max.max(1) {
            return Err(Failure::TooManyFragments { fragments_max: limits.fragments_max });
        }
        message.fragments += 1;
        message.bytes += payload_bytes;
        Ok(())
    }
}

impl Message {
    fn new(first: &FrameHeader) -> Self {
        let body = match first.opcode {
            opcode if first.rsv1 => Body::Deflated(opcode, Vec::new()),
            Opcode::Text => Body::Text(Text::default()),
            _ => Body::Binary(Vec::new()),
        };
        Self { body, bytes: 0, fragments: 0 }
    }
}

impl Body {
    /// Unmasks `piece` and appends it.
    fn push(&mut self, piece: &mut [u8], key: [u8; 4]) -> Result<(), Failure> {
        match self {
            Self::Text(text) => {
                // In place, because it is checked before it is copied; the input is in the cache.
                mask::unmask(piece, key);
                text.push(piece)
            }
            Self::Binary(bytes) | Self::Deflated(_, bytes) => {
                mask::unmask_onto(piece, key, bytes);
                Ok(())
            }
        }
    }

    fn opcode(&self) -> FirstOpcode {
        match self {
            Self::Text(_) => FirstOpcode { opcode: Opcode::Text, rsv1: false },
            Self::Binary(_) => FirstOpcode { opcode: Opcode::Binary, rsv1: false },
            Self::Deflated(opcode, _) => FirstOpcode { opcode: *opcode, rsv1: true },
        }
    }

    /// The bytes so far.
    fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Text(text) => text.bytes().into(),
            Self::Binary(bytes) | Self::Deflated(_, bytes) => bytes.into(),
        }
    }

    /// Moves the message into `pool`, unless it is still compressed.
    fn finish(self, pool: &mut Pool) -> Result<Arrived, Failure> {
        let (opcode, source) = match self {
            Self::Text(text) => {
                pool.text = text.finish()?;
                (Opcode::Text, PayloadSource::PoolText)
            }
            Self::Binary(bytes) => {
                pool.bytes = bytes;
                (Opcode::Binary, PayloadSource::PoolBytes)
            }
            Self::Deflated(opcode, bytes) => {
                return Ok(Arrived::Compressed(opcode, CompressedPayload::Assembled(bytes)));
            }
        };
        Ok(Arrived::Plain(CompleteFrame { opcode, source }))
    }
}

/// Opcode and RSV1 of the first frame of a message.
#[derive(Clone, Copy)]
struct FirstOpcode {
    opcode: Opcode,
    rsv1: bool,
}

/// The part of a frame's payload that has not arrived.
#[derive(Default)]
struct Missing {
    bytes: usize,
    /// Its first byte belongs to the first of them.
    mask: [u8; 4],
}

impl Missing {
    fn of(frame: &Frame) -> Self {
        Self { bytes: frame.bytes_left, mask: frame.mask }
    }
}

/// Appends the frame with `payload`, behind which the missing bytes come.
fn replay_frame(
    first: FirstOpcode,
    fin: bool,
    payload: &[u8],
    missing: Missing,
    into: &mut Vec<u8>,
) {
    let FirstOpcode { opcode, rsv1 } = first;
    // The key of the first byte, so that the key of the first missing one is as it was.
    let key = mask::advance(missing.mask, 4 - payload.len() % 4);
    let (mut header, header_bytes) = frame::header(opcode, rsv1, payload.len() + missing.bytes);
    if !fin {
        header[0] &= !frame::FIN;
    }
    header[1] |= frame::MASK;
    into.extend_from_slice(&header[..header_bytes]);
    into.extend_from_slice(&key);
    mask::unmask_onto(payload, key, into);
}

/// The longest header of a masked frame: two bytes, a 64-bit length, the key (RFC 6455 §5.2).
const HEADER_BYTES_MAX: usize = 14;
