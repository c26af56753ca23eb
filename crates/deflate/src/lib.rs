//! DEFLATE for message streams (RFC 1951, RFC 7692 §7.2): one message, one payload, and back.
//! Plaintext → compressed payload without its flush tail; compressed pieces → bounded plaintext.
//! Encodes by itself and inflates with zlib-rs; never IO, clocks, or anything of WebSocket framing.
//! Changed here: what the crate shows. Encoding is `standalone`, `dedicated` and `gap`, decoding `inflate`.
//!
//! A message there and back:
//!
//! ```
//! use fanwire_deflate::{Compressor, Inflater};
//!
//! let message = br#"{"home":1,"away":0}{"home":1,"away":1}{"home":2,"away":1}"#;
//! let mut payload = Vec::new();
//! Compressor::new(6).standalone(message, &mut payload);
//! assert!(payload.len() < message.len());
//!
//! let (mut inflater, mut plain) = (Inflater::new(), Vec::new());
//! inflater.push(&payload, &mut plain, 64 << 10)?;
//! inflater.finish(&mut plain, 64 << 10)?;
//! assert_eq!(plain, message);
//! # Ok::<(), fanwire_deflate::InflateError>(())
//! ```
#![forbid(unsafe_code)]

mod bits;
mod block;
mod checksum;
mod dedicated;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod gap;
mod header;
mod huffman;
mod inflate;
mod level;
mod matcher;
mod prefix;
mod shadow;
mod standalone;
mod strategy;
mod stream;
mod tables;
mod token;
mod window;

pub use checksum::{Checksum, Segment};
pub use dedicated::{Dedicated, Scratch};
pub use inflate::{InflateError, Inflater, SenderWindow};
pub use shadow::{Mismatch, Shadow};
pub use standalone::Compressor;
pub use strategy::Strategy;
pub use stream::{Coding, Envelope, end_stream, write_uncompressed};

/// The end of every sync flush; RFC 7692 §7.2.1 removes it from a payload and §7.2.2 appends it again.
pub const FLUSH_TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];
