//! Turns a connection's bytes into messages (RFC 6455 §5.4–§5.6, RFC 7692 §7.2.2).
//! Bytes in any split → one `Event` at a time, borrowed; or a `Failure` that ends the connection.
//! Uses the shard's `Pool` for inflating and assembling; owns memory between messages only for context takeover.
//! Changed here: the order of events, whole frames. Frames that arrive in pieces are `reader::partial`.

mod partial;

use std::ops::Range;

use fanwire_deflate::SenderWindow;

use self::partial::Partial;
use crate::client::ClientAgreement;
use crate::header::{self, Allowed};
use crate::{Failure, Limits, Opcode, Pool, close, mask};

/// One connection's inbound state: 24 bytes, and no heap block between messages, other than the window of a client with
/// context takeover.
///
/// A complete frame that is no fragment is returned as a slice of the input without a copy
/// (inflated into the pool when compressed). Only a frame or message that arrives in pieces has
/// state, in one box, which grows with the bytes that arrived and never with the length in a header.
#[derive(Default)]
pub struct Reader {
    partial: Option<Box<Partial>>,
    /// Window with context takeover, from the first compressed message on.
    window: Option<Box<SenderWindow>>,
    compression: InboundCompression,
    /// A close frame or a failure came: the rest of the stream is ignored.
    ended: bool,
}

/// Agreed compression of the client's messages (RFC 7692 §7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InboundCompression {
    #[default]
    Raw,
    /// Each compressed message stands alone.
    Standalone,
    /// A compressed message may refer to the compressed ones before it.
    Takeover { window_bits: u8 },
}

impl Reader {
    /// A reader at the start of a connection; `compression_agreed` allows RSV1 (RFC 7692 §6) on messages that stand
    /// alone (§7.1.1.2).
    pub fn new(compression_agreed: bool) -> Self {
        let agreed = InboundCompression::Standalone;
        let compression = if compression_agreed { agreed } else { InboundCompression::Raw };
        Self { compression, ..Self::default() }
    }

    /// A reader at the start of a connection with context takeover of the client, in a window of 2^`window_bits` bytes,
    /// 8 to 15 (RFC 7692 §7.1.2.2).
    pub fn with_takeover(window_bits: u8) -> Self {
        Self { compression: InboundCompression::Takeover { window_bits }, ..Self::default() }
    }

    /// A reader in the state of another one, whose [`window`](Self::window) was `window`. It has to receive the bytes of
    /// [`replay`](Self::replay) before those of the client.
    pub fn resumed(compression: InboundCompression, window: &[u8]) -> Self {
        let window = match compression {
            InboundCompression::Takeover { window_bits } if !window.is_empty() => {
                Some(Box::new(SenderWindow::with_bytes(window_bits, window)))
            }
            _ => None,
        };
        Self { compression, window, ..Self::default() }
    }

    /// The agreed compression.
    pub fn compression(&self) -> InboundCompression {
        self.compression
    }

    /// The plaintext that the client's next message may refer to, oldest bytes first.
    pub fn window(&self) -> Vec<u8> {
        self.window.as_ref().map_or_else(Vec::new, |window| window.to_bytes())
    }

    /// The bytes that bring a [resumed](Self::resumed) reader to the same point of a frame or message that is incomplete.
    pub fn replay(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(partial) = &self.partial {
            partial.replay(&mut bytes);
        }
        bytes
    }

    /// Bytes of the client's window that are allocated at the moment; none before its first compressed message.
    pub fn window_bytes(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.heap_bytes())
    }

    /// Takes bytes from the front of `input` until one event is complete: a message, in one frame or in several
    /// (RFC 6455 §5.4b, §5.4e, §6.2d), or a control frame, also between the frames of a message (RFC 6455 §5.4d, §6.2b).
    ///
    /// `Ok(None)`: all of `input` was taken, and an incomplete frame or message is kept inside. Call it until
    /// then. `limits` must stay the same for a connection's whole life.
    ///
    /// # Errors
    /// The rule that the peer broke. After a failure, and after [`Event::Close`], all further bytes are
    /// taken and ignored (RFC 6455 §5.5.1, §7.1.7b).
    pub fn receive<'a>(
        &mut self,
        input: &'a mut Input<'_>,
        pool: &'a mut Pool,
        limits: &Limits,
    ) -> Result<Option<Event<'a>>, Failure> {
        self.receive_from::<true>(input, pool, limits)
    }

    /// The one body of [`receive`](Self::receive) and of `ClientReader::receive`, compiled once for each.
    fn receive_from<'a, const FROM_CLIENT: bool>(
        &mut self,
        input: &'a mut Input<'_>,
        pool: &'a mut Pool,
        limits: &Limits,
    ) -> Result<Option<Event<'a>>, Failure> {
        pool.trim();
        let ready = self.advance::<FROM_CLIENT>(input, pool, limits).inspect_err(|_| self.end())?;
        let Some(ready) = ready else { return Ok(None) };
        if ready.opcode == Opcode::Close {
            self.end();
        }
        ready.event(input.bytes, pool).inspect_err(|_| self.end()).map(Some)
    }

    fn advance<const FROM_CLIENT: bool>(
        &mut self,
        input: &mut Input<'_>,
        pool: &mut Pool,
        limits: &Limits,
    ) -> Result<Option<CompleteFrame>, Failure> {
        let (opcode, payload) = match self.assemble::<FROM_CLIENT>(input, pool, limits)? {
            None => return Ok(None),
            Some(Arrived::Plain(frame)) => return Ok(Some(frame)),
            Some(Arrived::Compressed(opcode, payload)) => (opcode, payload),
        };
        match payload {
            CompressedPayload::Input(range) => self.inflate(&input.bytes[range], pool, limits),
            CompressedPayload::Assembled(bytes) => self.inflate(&bytes, pool, limits),
        }?;
        Ok(Some(CompleteFrame { opcode, source: PayloadSource::PoolBytes }))
    }

    fn assemble<const FROM_CLIENT: bool>(
        &mut self,
        input: &mut Input<'_>,
        pool: &mut Pool,
        limits: &Limits,
    ) -> Result<Option<Arrived>, Failure> {
        if self.ended {
            input.taken = input.bytes.len();
            return Ok(None);
        }
        let compression_agreed = self.compression != InboundCompression::Raw;
        if self.partial.is_none()
            && let Some(arrived) = whole_frame::<FROM_CLIENT>(compression_agreed, input, limits)?
        {
            return Ok(Some(arrived));
        }
        while !input.is_empty() {
            let partial = self.partial.get_or_insert_default();
            let arrived =
                partial.advance::<FROM_CLIENT>(compression_agreed, input, pool, limits)?;
            if partial.is_idle() {
                self.partial = None;
            }
            if arrived.is_some() {
                return Ok(arrived);
            }
        }
        Ok(None)
    }

    /// Inflates the payload of all frames of a message into the pool (RFC 7692 §6.2a). Messages that are not compressed are delivered as they
    /// are (RFC 7692 §6.2b) and never enter the window, because they pass by the compressor of the client (RFC 7692 §7.2.2a).
    fn inflate(&mut self, payload: &[u8], pool: &mut Pool, limits: &Limits) -> Result<(), Failure> {
        let window = match self.compression {
            InboundCompression::Takeover { window_bits } => {
                let window = || Box::new(SenderWindow::new(window_bits));
                Some(self.window.get_or_insert_with(window).as_mut())
            }
            InboundCompression::Raw | InboundCompression::Standalone => None,
        };
        pool.inflate(payload, window, limits)
    }

    fn end(&mut self) {
        self.partial = None;
        self.window = None;
        self.ended = true;
    }
}

/// The inbound state on the client's side: as [`Reader`], for the frames of a server, which have no mask (RFC 6455 §5.1).
pub struct ClientReader(Reader);

impl ClientReader {
    /// A reader at the start of a connection, as `agreement` says; `None`: without compression.
    pub fn new(agreement: Option<&ClientAgreement>) -> Self {
        Self(match agreement.map(|agreement| agreement.server_window_bits) {
            None => Reader::new(false),
            Some(None) => Reader::new(true),
            Some(Some(window_bits)) => Reader::with_takeover(window_bits),
        })
    }

    /// Takes bytes as [`Reader::receive`] does.
    ///
    /// # Errors
    /// As there; a frame with a mask is one of them.
    pub fn receive<'a>(
        &mut self,
        input: &'a mut Input<'_>,
        pool: &'a mut Pool,
        limits: &Limits,
    ) -> Result<Option<Event<'a>>, Failure> {
        self.0.receive_from::<false>(input, pool, limits)
    }
}

/// Takes a frame that is complete in `input` and is a whole message; takes nothing otherwise.
fn whole_frame<const FROM_CLIENT: bool>(
    compression_agreed: bool,
    input: &mut Input<'_>,
    limits: &Limits,
) -> Result<Option<Arrived>, Failure> {
    let allowed = Allowed {
        rsv1: compression_agreed,
        continuation: false,
        payload_bytes: limits.message_bytes_max,
        message_bytes_max: limits.message_bytes_max,
    };
    let rest = &input.bytes[input.taken..];
    let Some(header) = header::parse::<FROM_CLIENT>(rest, allowed)? else { return Ok(None) };
    if !header.fin || header.payload_bytes > rest.len() - header.header_bytes {
        return Ok(None);
    }
    let start = input.taken + header.header_bytes;
    let range = start..start + header.payload_bytes;
    input.taken = range.end;
    if FROM_CLIENT {
        mask::unmask(&mut input.bytes[range.clone()], header.mask);
    }
    let opcode = header.opcode;
    Ok(Some(if header.rsv1 {
        Arrived::Compressed(opcode, CompressedPayload::Input(range))
    } else {
        Arrived::Plain(CompleteFrame { opcode, source: PayloadSource::Input(range) })
    }))
}

/// A message or control frame whose last byte has arrived.
enum Arrived {
    Plain(CompleteFrame),
    Compressed(Opcode, CompressedPayload),
}

/// The location of a payload that is to be inflated.
enum CompressedPayload {
    Input(Range<usize>),
    Assembled(Vec<u8>),
}

/// A complete message or control frame, before its bytes are borrowed.
struct CompleteFrame {
    opcode: Opcode,
    source: PayloadSource,
}

/// The location of an event's payload.
enum PayloadSource {
    Input(Range<usize>),
    PoolBytes,
    /// Text that is valid UTF-8.
    PoolText,
}

impl CompleteFrame {
    fn event<'a>(self, input: &'a [u8], pool: &'a Pool) -> Result<Event<'a>, Failure> {
        let payload = match self.source {
            PayloadSource::PoolText => return Ok(Event::Text(&pool.text)),
            PayloadSource::PoolBytes => &pool.bytes,
            PayloadSource::Input(range) => &input[range],
        };
        Ok(match self.opcode {
            // RFC 6455 §5.6a, §8.1a
            Opcode::Text => Event::Text(str::from_utf8(payload).map_err(|_| Failure::TextNotUtf8)?),
            // The first frame's opcode is the type of the message (RFC 6455 §6.2c).
            Opcode::Binary | Opcode::Continuation => Event::Binary(payload),
            Opcode::Ping => Event::Ping(payload),
            Opcode::Pong => Event::Pong(payload),
            Opcode::Close => Event::Close(close::parse(payload)?),
        })
    }
}

/// One message or control frame, borrowed until the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole text message, inflated if it was compressed.
    Text(&'a str),
    /// A whole binary message, inflated if it was compressed.
    Binary(&'a [u8]),
    /// A ping of at most 125 bytes, to be sent back in a pong (RFC 6455 §5.5.2).
    Ping(&'a [u8]),
    /// A pong of at most 125 bytes (RFC 6455 §5.5.3).
    Pong(&'a [u8]),
    /// Code and reason, if given; to be answered with a close frame (RFC 6455 §5.5.1).
    Close(Option<(u16, &'a str)>),
}

/// Bytes read from a socket; a [`Reader`] unmasks them in place and takes them from the front.
#[derive(Debug)]
pub struct Input<'b> {
    bytes: &'b mut [u8],
    taken: usize,
}

impl<'b> Input<'b> {
    /// An input of which nothing is taken yet.
    pub fn new(bytes: &'b mut [u8]) -> Self {
        Self { bytes, taken: 0 }
    }

    /// Whether all bytes were taken.
    pub fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    /// The bytes that were not taken, unchanged: to be read later, with the same reader.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Takes up to `bytes_max` bytes from the front.
    fn take(&mut self, bytes_max: usize) -> &mut [u8] {
        let start = self.taken;
        self.taken = self.bytes.len().min(start.saturating_add(bytes_max));
        &mut self.bytes[start..self.taken]
    }
}

#[cfg(test)]
mod tests;
