//! How one connection's outbound messages are compressed (RFC 7692 §7.2.1): its whole state.
//! The agreement of the handshake → one small value → yes or no for each message.
//! Uses `extension`; never holds an encoder, and never compresses anything itself.
//! Change here: kinds of compression. The encoder is crate `deflate`, the offers `extension`.

use crate::extension::Agreement;

/// How one connection's messages are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// Never: every frame has RSV1 = 0.
    Raw,
    /// Each message by itself, in a frame that all such connections share.
    Standalone,
    /// The same, for a peer that asked for a window of 2^`window_bits` bytes, 9..=14.
    StandaloneWithin { window_bits: u8 },
}

impl Compression {
    /// What `agreement` allows; no agreement is `Raw`.
    pub fn of(agreement: Option<Agreement>) -> Self {
        match agreement.map(|agreement| agreement.server_window_bits) {
            None => Self::Raw,
            Some(15..) => Self::Standalone,
            Some(window_bits) => Self::StandaloneWithin { window_bits },
        }
    }

    /// Whether a message of `message_bytes` bytes may go out as the shared standalone frame.
    ///
    /// That frame is compressed once, with a window of 32 KiB. Its distances are smaller than the
    /// message, so a peer with a smaller window can read it when the whole message fits that window
    /// (RFC 7692 §7.1.2.1). Otherwise the message goes out raw, which is always allowed (§6).
    pub fn takes(self, message_bytes: usize) -> bool {
        match self {
            Self::Raw => false,
            Self::Standalone => true,
            Self::StandaloneWithin { window_bits } => message_bytes <= 1 << window_bits,
        }
    }
}

#[cfg(test)]
mod tests;
