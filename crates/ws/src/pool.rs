//! State that the connections of one shard share for reading: scratch buffers and one inflater.
//! A compressed payload → plaintext; an assembled message stays here until the next call.
//! Uses `deflate`; never holds anything of a connection beyond its last event.
//! Changed here: what is pooled and how much is kept. `reader` fills it.

use fanwire_deflate::{InflateError, Inflater, SenderWindow};

use crate::{Failure, Limits};

/// Scratch space and an inflater, one per shard.
///
/// Empty at first; the inflater (some 50 KB) is made for the first compressed message. Buffers are
/// kept up to 64 KiB each; larger ones are freed at the next `receive`.
#[derive(Default)]
pub struct Pool {
    inflater: Option<Box<Inflater>>,
    /// The binary or inflated payload of the current event.
    pub(crate) bytes: Vec<u8>,
    /// The assembled text of the current event.
    pub(crate) text: String,
}

impl Pool {
    /// An empty pool; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inflates one whole compressed payload into `bytes` (RFC 7692 §7.2.2). It may refer to the bytes in `window`,
    /// to which its own are added; without one it stands alone.
    pub(crate) fn inflate(
        &mut self,
        payload: &[u8],
        window: Option<&mut SenderWindow>,
        limits: &Limits,
    ) -> Result<(), Failure> {
        let inflater = self.inflater.get_or_insert_default();
        let bytes_max = limits.inflated_bytes_max;
        self.bytes.clear();
        let inflated = match window {
            Some(window) => inflater.message(payload, window, &mut self.bytes, bytes_max),
            None => {
                inflater.reset();
                let pushed = inflater.push(payload, &mut self.bytes, bytes_max);
                pushed.and_then(|()| inflater.finish(&mut self.bytes, bytes_max))
            }
        };
        inflated.map_err(|error| match error {
            InflateError::TooLarge { bytes_max } => Failure::InflatedTooBig { bytes_max },
            _ => Failure::CorruptDeflate,
        })
    }

    /// Frees buffers that an unusually large message needed.
    pub(crate) fn trim(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
        if self.text.capacity() > KEPT_BYTES_MAX {
            self.text = String::new();
        }
    }
}

/// Ordinary messages need no allocation; a rare large one does not keep its buffer.
const KEPT_BYTES_MAX: usize = 65_536;
