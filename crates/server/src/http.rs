//! The HTTP side of the server: one listener for WebSocket handshakes, the API and the operator's pages.
//! In: TCP connections → out: answers, and sockets that leave for a shard after their 101.
//! Uses hyper and axum on the ordinary runtime; never touches a connection after its handshake.
//! Changed here: nothing but the list of rooms. Accepting is `listener`, when a peer is given up `timeout_stream`, what it is told of requests `exchange`, what every request must have `host`, what answers it `root_service`, who may come in `admission`, the handshake `upgrade`, the API `api_service`, what else is served `routes`.

pub mod admission;
pub mod api_service;
mod exchange;
mod host;
pub mod listener;
pub mod origin;
pub mod rate;
pub mod refusals;
pub mod root_service;
pub mod routes;
mod timeout_stream;
pub mod upgrade;
