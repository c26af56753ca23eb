//! Integration tests of fanwire-ws: both directions against codecs written for the test.
//! Random messages, frames, offers and bytes → the results that RFC 6455 and RFC 7692 define.
//! Uses the public items only.
//! Changed here: the list of test modules.
#![forbid(unsafe_code)]

mod any_bytes;
mod client;
mod client_role;
mod client_streams;
mod client_takeover;
mod memory;
mod offers;
mod server_frames;
