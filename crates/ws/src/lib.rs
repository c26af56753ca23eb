//! WebSocket on the server's side (RFC 6455) with permessage-deflate (RFC 7692), without sockets.
//! Handshake headers → accept, subprotocol, extension; bytes → messages; messages → frames.
//! Uses `deflate`; never sockets, clocks, an HTTP library, or anything of the client protocol.
//! Change here: what the crate shows. Reading is `reader`, writing `frame`, offers `extension`.
#![forbid(unsafe_code)]

pub mod extension;
pub mod frame;
#[doc(hidden)]
pub mod fuzzing;
pub mod handshake;

mod close;
mod compression;
mod failure;
mod header;
mod list;
mod mask;
mod pool;
mod reader;
mod text;

pub use compression::Compression;
pub use failure::Failure;
pub use frame::Opcode;
pub use pool::Pool;
pub use reader::{Event, Input, Limits, Reader};
