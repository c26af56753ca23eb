//! The two encodings, and how messages stand in one WebSocket message (client protocol §1, §2, §6).
//! In: an encoding. Out: its name on the wire, the separator between messages, the bytes of a ping.
//! Uses nothing; never looks at a message.
//! Framing of output changes here; framing of input in `command`, the shape of messages in `reply`.

/// How messages are written: JSON in text frames or Protobuf in binary frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encoding {
    /// Newline-separated JSON objects.
    Json,
    /// Messages with a varint length before each.
    Protobuf,
}

impl Encoding {
    /// Both, in the order of [`Encoding::index`].
    pub const ALL: [Self; 2] = [Self::Json, Self::Protobuf];

    /// 0 for JSON, 1 for Protobuf: a place in an array with one slot per encoding.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether messages travel in binary frames.
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::Protobuf)
    }

    /// Its name, as backends see it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Protobuf => "protobuf",
        }
    }

    /// The name in `Sec-WebSocket-Protocol` (client protocol §1).
    pub const fn subprotocol(self) -> &'static str {
        match self {
            Self::Json => "centrifuge-json",
            Self::Protobuf => "centrifuge-protobuf",
        }
    }
}

/// The most messages a writer joins into one frame (client protocol §23).
pub const MESSAGES_PER_FRAME_MAX: usize = 16;

/// Writes the separator of two messages in one frame: a newline in JSON, nothing in Protobuf,
/// where the length before each message separates them.
pub fn join(encoding: Encoding, out: &mut Vec<u8>) {
    if encoding == Encoding::Json {
        out.push(b'\n');
    }
}

/// A reply without any field (client protocol §6). The client's pong has the same bytes.
pub const fn ping(encoding: Encoding) -> &'static [u8] {
    match encoding {
        Encoding::Json => b"{}",
        Encoding::Protobuf => &[0],
    }
}
