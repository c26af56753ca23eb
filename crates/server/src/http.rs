//! The HTTP side of the server: listeners for WebSocket handshakes, the API and the operator's pages.
//! In: TCP connections → out: responses, and sockets that move to a shard after their 101 or the request of a stream.
//! Uses hyper and axum on the tokio runtime; never touches a connection after its handshake.
//! Changed here: only the list of modules. `listener` accepts connections, `tls_accept` does the TLS handshake, `timeout_stream` limits slow peers, `http2` serves connections of HTTP/2, `exchange` tracks the request of a connection, `plain_request` has shards read plain requests, `host` checks the header Host, `root_service` selects the service, `admission` limits new clients, `upgrade` does the handshake, `response_stream` begins HTTP streams and event streams, `emulation` takes their commands, `unidirectional` reads the connect requests of clients without commands, `cors` lets pages of other origins call these, `api_service` serves the API, `command_stream` its long requests, `debug` serves profiles, `routes` the other paths.

pub mod admission;
pub mod api_service;
mod command_stream;
mod content_coding;
mod cors;
mod date;
mod debug;
mod emulation;
mod exchange;
mod host;
mod http2;
pub mod listener;
pub mod origin;
mod plain_request;
pub mod rate;
mod response_stream;
pub mod root_service;
pub mod routes;
mod socket;
mod timeout_stream;
pub mod tls_accept;
mod tls_stream;
mod unidirectional;
pub mod upgrade;
