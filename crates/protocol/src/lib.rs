//! The Centrifugo client protocol (v2) as values: commands in, replies and pushes out, and codes.
//! In: one WebSocket message of bytes → [`Command`]s. Out: [`Reply`]s and pushes → bytes, as JSON or Protobuf.
//! Uses prost, serde and bytes; never a socket, a clock, a session or the WebSocket frame around its bytes.
//! Wire shapes change in `proto/client.proto`, codes in `codes`; what a command does lives in the node.
//!
//! A command of a client, and what it is answered:
//!
//! ```
//! use fanwire_protocol::{Commands, Encoding, ErrorCode, Reply, Request, encode_reply};
//!
//! let message = br#"{"id":7,"subscribe":{"channel":"news"}}"#;
//! for command in Commands::new(Encoding::Json, message) {
//!     let (id, request) = command?.into_request();
//!     assert!(matches!(request, Request::Subscribe(subscribe) if subscribe.channel == "news"));
//!
//!     let error = Some(ErrorCode::PERMISSION_DENIED.into());
//!     let mut reply = Vec::new();
//!     encode_reply(Encoding::Json, &Reply { id, error, ..Reply::default() }, &mut reply)?;
//!     assert_eq!(reply, br#"{"id":7,"error":{"code":103,"message":"permission denied"}}"#);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub use any_case::AnyCase;
pub use client_side::{MessageReplies, encode_command};
pub use codes::{Disconnect, ErrorCode, UnsubscribeCode};
pub use command::{Commands, Request};
pub use encoding::{Encoding, MESSAGES_PER_FRAME_MAX, join, ping};
pub use error::{DecodeError, NotJson};
pub use escape::json_string;
pub use json::without_halves;
pub use member::text_member;
pub use message::Error as ProtocolError;
pub use message::*;
pub use publication::{encode_publication, has_json};
pub use reply::{
    encode_disconnect_push, encode_join_push, encode_leave_push, encode_refresh_push, encode_reply,
    encode_unsubscribe_push,
};
pub use scan::{JSON_DEPTH_MAX, is_json, is_json_object, nests_too_deep};
pub use span::{bare_push, publication_in_bare_push, publication_in_push};

mod any_case;
mod client_side;
mod codes;
mod command;
mod encoding;
mod error;
mod escape;
pub mod fossil;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod json;
mod member;
pub mod message;
pub mod protobuf;
pub mod proxy;
mod publication;
mod reply;
mod scan;
mod span;
