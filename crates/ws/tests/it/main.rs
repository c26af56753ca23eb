//! Integration tests of fanwire-ws: both directions against codecs written for the test.
//! Random messages, frames, offers and bytes → what RFC 6455 and RFC 7692 say.
//! Uses the public face only.
//! Change here: the list of test rooms.
#![forbid(unsafe_code)]

mod any_bytes;
mod client;
mod client_streams;
mod offers;
mod server_frames;
