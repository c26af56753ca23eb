//! Errors of a peer once the connection is open (RFC 6455 §5, §7.4, §8.1; RFC 7692 §6).
//! A `Failure` → the close code that the RFC names, and a sentence for log and close reason.
//! Uses nothing; never carries strings to parse.
//! Changed here: a failure, its code, its text. They are detected in `header`, `close`, `reader`.

use std::fmt;

/// The reason why the connection must be failed (RFC 6455 §7.1.7): send `close_code` in a close frame, then close.
///
/// The text of `Display` is at most 123 bytes, so that it fits a close frame as its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    // The peer breaks the framing: 1002.
    /// RSV2 or RSV3 is set, or RSV1 without permessage-deflate (RFC 6455 §5.2).
    ReservedBits,
    /// RSV1 on a control or continuation frame (RFC 7692 §6.1: only the first frame of a message).
    MisplacedRsv1,
    /// An opcode that RFC 6455 §5.2 reserves: 3..=7 or 11..=15.
    ReservedOpcode { opcode: u8 },
    /// A control frame with fin = 0 (RFC 6455 §5.5).
    FragmentedControl,
    /// A control frame with more than 125 bytes (RFC 6455 §5.5).
    ControlTooLong,
    /// A frame without a mask (RFC 6455 §5.1).
    Unmasked,
    /// A server's frame with a mask (RFC 6455 §5.1).
    Masked,
    /// A length in more bytes than it needs (RFC 6455 §5.2).
    LengthNotMinimal,
    /// A 64-bit length with its highest bit set (RFC 6455 §5.2).
    LengthHighBit,
    /// A continuation frame where no message is open (RFC 6455 §5.4).
    ContinuationWithoutStart,
    /// A text or binary frame where another message is still open (RFC 6455 §5.4).
    MessageInterleaved,
    /// A close payload of one byte (RFC 6455 §5.5.1).
    CloseTooShort,
    /// A close code that must not be sent (RFC 6455 §7.4).
    CloseCode { code: u16 },

    // The payload is not valid for the frame: 1007.
    /// A text message that is not UTF-8 (RFC 6455 §8.1).
    TextNotUtf8,
    /// A close reason that is not UTF-8 (RFC 6455 §5.5.1).
    CloseReasonNotUtf8,
    /// A compressed message that does not inflate (RFC 7692 §7.2.2).
    CorruptDeflate,

    // A limit of ours: 1009, or 1008 for the number of fragments, which is policy rather than size.
    /// More payload bytes than [`Limits::message_bytes_max`](crate::Limits::message_bytes_max).
    MessageTooBig { bytes_max: usize },
    /// More inflated bytes than [`Limits::inflated_bytes_max`](crate::Limits::inflated_bytes_max).
    InflatedTooBig { bytes_max: usize },
    /// More frames in one message than [`Limits::fragments_max`](crate::Limits::fragments_max).
    TooManyFragments { fragments_max: u32 },
}

impl Failure {
    /// The code of the close frame to send: 1002, 1007, 1008 or 1009 (RFC 6455 §7.4.1).
    pub fn close_code(&self) -> u16 {
        match self {
            Self::ReservedBits
            | Self::MisplacedRsv1
            | Self::ReservedOpcode { .. }
            | Self::FragmentedControl
            | Self::ControlTooLong
            | Self::Unmasked
            | Self::Masked
            | Self::LengthNotMinimal
            | Self::LengthHighBit
            | Self::ContinuationWithoutStart
            | Self::MessageInterleaved
            | Self::CloseTooShort
            | Self::CloseCode { .. } => 1002,
            Self::TextNotUtf8 | Self::CloseReasonNotUtf8 | Self::CorruptDeflate => 1007,
            Self::TooManyFragments { .. } => 1008,
            Self::MessageTooBig { .. } | Self::InflatedTooBig { .. } => 1009,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReservedBits => f.write_str("a reserved bit is set that no extension defines"),
            Self::MisplacedRsv1 => f.write_str("RSV1 is set beyond the first frame of a message"),
            Self::ReservedOpcode { opcode } => write!(f, "opcode {opcode} is reserved"),
            Self::FragmentedControl => f.write_str("a control frame is fragmented"),
            Self::ControlTooLong => f.write_str("a control frame is longer than 125 bytes"),
            Self::Unmasked => f.write_str("a client frame is not masked"),
            Self::Masked => f.write_str("a server frame is masked"),
            Self::LengthNotMinimal => {
                f.write_str("a frame's length is written in more bytes than needed")
            }
            Self::LengthHighBit => f.write_str("the highest bit of a 64-bit frame length is set"),
            Self::ContinuationWithoutStart => {
                f.write_str("a continuation frame without a message to continue")
            }
            Self::MessageInterleaved => {
                f.write_str("a new message starts before the last one is complete")
            }
            Self::CloseTooShort => f.write_str("a close frame's payload is one byte"),
            Self::CloseCode { code } => write!(f, "close code {code} must not be sent"),
            Self::TextNotUtf8 => f.write_str("a text message is not valid UTF-8"),
            Self::CloseReasonNotUtf8 => f.write_str("a close reason is not valid UTF-8"),
            Self::CorruptDeflate => f.write_str("a compressed message does not inflate"),
            Self::MessageTooBig { bytes_max } => {
                write!(f, "a message is larger than {bytes_max} bytes")
            }
            Self::InflatedTooBig { bytes_max } => {
                write!(f, "a message inflates to more than {bytes_max} bytes")
            }
            Self::TooManyFragments { fragments_max } => {
                write!(f, "a message has more than {fragments_max} fragments")
            }
        }
    }
}

impl std::error::Error for Failure {}
