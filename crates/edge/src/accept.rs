//! Listeners turn sockets into requests: accepting, TLS, HTTP/1.1 and HTTP/2, and the limits of slow peers.
//! In: listeners → out: requests for endpoints on shards, or for the service of the listener.
//! Uses hyper on the tokio runtime, and the shards; never looks into a body.
//! Changed here: only the list of modules. `listener` accepts sockets, `tls_accept` does the TLS handshake, `plain_request` has shards read
//! requests, `timeout_stream` and `bodies` limit slow peers, `http2` serves HTTP/2, `frame_limit` ends its floods,
//! `exchange` tracks the request of a connection.

pub(crate) mod bodies;
pub(crate) mod date;
pub(crate) mod exchange;
pub(crate) mod forwarded;
mod frame_limit;
pub mod host;
pub(crate) mod http2;
mod limits;
pub mod listener;
pub(crate) mod networks;
pub(crate) mod plain_request;
mod slots;
pub(crate) mod socket;
pub(crate) mod timeout_stream;
pub(crate) mod tls_accept;
mod tls_stream;
