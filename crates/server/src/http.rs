//! The HTTP side of the server: one listener for WebSocket handshakes, the API and the operator's pages.
//! In: TCP connections → out: answers, and sockets that leave for a shard after their 101.
//! Uses hyper and axum on the ordinary runtime; never touches a connection after its handshake.
//! Changed here: nothing but the list of rooms. Accepting is `listener`, the handshake `upgrade`, what is served `routes`.

pub mod listener;
pub mod origin;
mod patient;
pub mod rate;
pub mod routes;
pub mod upgrade;
