//! WebSocket (RFC 6455) with permessage-deflate (RFC 7692), without sockets: on the server's side, and on the client's.
//! Handshake headers → accept, subprotocol, extension; bytes → messages; messages → frames.
//! Uses `deflate`; never sockets, clocks, an HTTP library, or anything of the client protocol.
//! Changed here: what the crate shows. Reading is `reader`, writing `frame`, offers `extension`; a client's handshake is `client`.
//!
//! A handshake, a message of the client and one of the server:
//!
//! ```
//! use fanwire_ws::{Event, Input, Limits, Opcode, Pool, Reader, frame, handshake};
//!
//! let request = handshake::HandshakeRequest {
//!     method: "GET",
//!     http_1_1_or_newer: true,
//!     upgrade: Some("websocket"),
//!     connection: Some("Upgrade"),
//!     key: Some("dGhlIHNhbXBsZSBub25jZQ=="),
//!     version: Some("13"),
//!     has_body: false,
//! };
//! assert_eq!(handshake::check(&request)?, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
//!
//! // What came from the socket: "Hello" in one masked text frame (RFC 6455 §5.7).
//! let mut bytes = *b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
//! let (mut reader, mut pool) = (Reader::new(false), Pool::new());
//! let mut input = Input::new(&mut bytes);
//! while let Some(event) = reader.receive(&mut input, &mut pool, &Limits::default())? {
//!     assert_eq!(event, Event::Text("Hello"));
//! }
//!
//! let mut answer = Vec::new();
//! frame::encode(Opcode::Text, false, b"Hello", &mut answer);
//! assert_eq!(answer, b"\x81\x05Hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod client;
pub mod extension;
pub mod frame;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod handshake;

mod close;
mod compression;
mod failure;
mod header;
mod limits;
mod list;
mod mask;
mod pool;
mod reader;
mod text;

pub use compression::Compression;
pub use failure::Failure;
pub use frame::Opcode;
pub use limits::Limits;
pub use pool::Pool;
pub use reader::{ClientReader, Event, InboundCompression, Input, Reader};
