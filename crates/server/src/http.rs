//! The HTTP side of the server: listeners for WebSocket handshakes, the API and the operator's pages.
//! In: TCP connections → out: responses, and sockets that move to a shard after their 101.
//! Uses hyper and axum on the tokio runtime; never touches a connection after its handshake.
//! Changed here: only the list of modules. `listener` accepts connections, `timeout_stream` limits slow peers, `exchange` tracks the request of a connection, `host` checks the header Host, `root_service` selects the service, `admission` limits new clients, `upgrade` does the handshake, `api_service` serves the API, `command_stream` its long requests, `debug` serves profiles, `routes` the other paths.

pub mod admission;
pub mod api_service;
mod command_stream;
mod debug;
mod exchange;
mod host;
pub mod listener;
pub mod origin;
pub mod rate;
pub mod root_service;
pub mod routes;
mod timeout_stream;
pub mod upgrade;
