//! Limits of one message.
//! In: the server's configuration → out: bounds that the reader and its pool check.
//! Uses nothing; never counts anything itself.
//! A limit is added here, with its close code; `failure` has the text that is sent to the peer.

/// Upper bounds of one message; a message beyond them fails the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Payload bytes of one message as sent, all its frames together, before inflating → 1009.
    pub message_bytes_max: usize,
    /// Bytes of one compressed message after inflating → 1009.
    pub inflated_bytes_max: usize,
    /// Frames of one message → 1008.
    pub fragments_max: u32,
}

impl Default for Limits {
    /// 64 KiB per message, ten times that after inflating, 65,536 frames.
    fn default() -> Self {
        Self { message_bytes_max: 65_536, inflated_bytes_max: 655_360, fragments_max: 65_536 }
    }
}
