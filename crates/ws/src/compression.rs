//! The compression of one connection's outbound messages (RFC 7692 §7.2.1): its whole state.
//! The agreement of the handshake → one small value → yes or no for each message.
//! Uses `extension`; never holds an encoder, and never compresses anything itself.
//! Changed here: kinds of compression. The encoder is crate `deflate`, the offers `extension`.

use crate::extension::Agreement;

/// How one connection's messages are compressed; `window_bits` is the peer's window, 9..=15.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// No compression: every frame has RSV1 = 0.
    Raw,
    /// Each message alone, in a frame that all such connections can share.
    Standalone { window_bits: u8 },
    /// Publications may refer to earlier ones in the peer's window, in frames that connections with the same distances
    /// share; other messages are compressed alone.
    Context { window_bits: u8 },
    /// Each message may refer to all earlier ones; the connection has a compressor of its own.
    Dedicated { window_bits: u8 },
}

impl Compression {
    /// The compression of all messages to a peer with this `agreement` (RFC 7692 §5f, §7.2.1b); without one it is `Raw`.
    pub fn of(agreement: Option<Agreement>) -> Self {
        match agreement {
            None => Self::Raw,
            Some(Agreement { server_no_context_takeover, server_window_bits, .. }) => {
                let window_bits = server_window_bits;
                if server_no_context_takeover {
                    Self::Standalone { window_bits }
                } else {
                    Self::Context { window_bits }
                }
            }
        }
    }

    /// The same compression without references between messages.
    pub fn without_context(self) -> Self {
        match self {
            Self::Context { window_bits } | Self::Dedicated { window_bits } => {
                Self::Standalone { window_bits }
            }
            other => other,
        }
    }

    /// The same with a compressor of the connection's own, if references between messages are allowed.
    pub fn dedicated(self) -> Self {
        match self {
            Self::Context { window_bits } => Self::Dedicated { window_bits },
            other => other,
        }
    }

    /// The peer's window, if messages to it are compressed.
    pub fn window_bits(self) -> Option<u8> {
        match self {
            Self::Raw => None,
            Self::Standalone { window_bits }
            | Self::Context { window_bits }
            | Self::Dedicated { window_bits } => Some(window_bits),
        }
    }

    /// Whether a message of `message_bytes` bytes may be sent as the shared standalone frame.
    ///
    /// That frame is compressed once, with a window of 32 KiB. Its distances are smaller than the
    /// message, so a peer with a smaller window can read it when the whole message fits that window
    /// (RFC 7692 §7.2.1c). Otherwise the message is sent raw, which is always allowed (§6).
    pub fn takes(self, message_bytes: usize) -> bool {
        match self {
            Self::Raw | Self::Dedicated { .. } => false,
            Self::Standalone { window_bits } | Self::Context { window_bits } => {
                window_bits == 15 || message_bytes <= 1 << window_bits
            }
        }
    }
}

#[cfg(test)]
mod tests;
