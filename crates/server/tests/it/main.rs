//! The server as its users see it: real sockets on loopback, whole processes of one test.
//! In: a configuration and bytes on a socket → out: bytes on sockets.
//! Uses the library's public face and a small client of its own; never the insides of a room.
//! Changed here: nothing but the list. One module per concern.
#![forbid(unsafe_code)]

mod client;
mod connections;
mod context;
mod early;
mod endpoints;
mod fairness;
mod handshake;
mod jwks;
mod limits;
mod pressure;
mod route;
mod shutdown;
mod traffic;
