//! The HTTP side of the server: one listener for WebSocket handshakes, the API and the operator's pages.
//! In: TCP connections → out: answers, and sockets that leave for a shard after their 101.
//! Uses hyper and axum on the ordinary runtime; never touches a connection after its handshake.
//! Changed here: nothing but the list of rooms. Accepting is `listener`, when a peer is given up `patient`, what it is told of requests `exchange`, what every request must have `host`, what answers it `site`, who may come in `admission`, the handshake `upgrade`, the API `desk`, what else is served `routes`.

pub mod admission;
pub mod desk;
mod exchange;
mod host;
pub mod listener;
pub mod origin;
mod patient;
pub mod rate;
pub mod refusals;
pub mod routes;
pub mod site;
pub mod upgrade;
