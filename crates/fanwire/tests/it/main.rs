//! The server as its users see it: real sockets on loopback, a whole server per test.
//! In: a configuration and bytes on a socket → out: bytes on sockets.
//! Uses the library's public interface and a small client of its own; never internals.
//! Changed here: only the list. One module per concern.
#![forbid(unsafe_code)]

mod acme;
mod areas;
mod client;
mod connections;
mod context;
mod drain;
mod early;
mod embedded;
mod endpoints;
mod fairness;
mod filters;
mod forwarded;
mod grpc;
mod handshake;
mod hooks;
mod http2;
mod jwks;
mod limits;
mod log;
mod pebble;
mod pressure;
mod rooms;
mod route;
mod rust_client;
mod shutdown;
mod snapshots;
mod stream;
mod streams;
mod streams_compressed;
mod takeover;
mod tenants;
mod tls;
mod traffic;
mod uni;
