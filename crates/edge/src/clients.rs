//! From a request to a connection: the endpoints of clients, and the checks and limits in front of them.
//! In: requests, from hyper or from a shard → out: connections of shards, commands for sessions, or HTTP errors.
//! Uses `ws` for handshakes and the node for commands; never decides about a connect.
//! Changed here: only the list of modules. `upgrade` opens WebSockets, `response_stream` HTTP streams and event streams, `emulation`
//! takes their commands, `unidirectional` and `uni_grpc` have clients without commands; `admission` limits new clients, `routes` has the paths.

pub(crate) mod admission;
mod content_coding;
mod cors;
mod emulation;
mod endpoint;
pub(crate) mod origin;
pub(crate) mod overload;
pub(crate) mod rate;
pub(crate) mod readers;
pub(crate) mod refusals;
mod response_stream;
pub(crate) mod routes;
pub mod settings;
pub(crate) mod uni_grpc;
mod unidirectional;
pub(crate) mod upgrade;
mod websocket;
