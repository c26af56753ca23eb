//! Fanwire as a library: the server of the Centrifugo client protocol and server API.
//! In: a `Config` → out: a running `Server` with its shards, its HTTP faces and its metrics.
//! Uses every room below it; the only crate with clients' sockets. Never: protocol, compression or channel rules of its own.
//! Changed here: what the library shows to its users. Each concern lives in the module of its name.
//!
//! ```no_run
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let config = fanwire::config::Config::default();
//! let server = fanwire::Server::start(config).await?;
//! println!("listening on {}", server.address());
//! server.shutdown().await;
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod budget;
mod clock;
mod compression;
pub mod config;
mod descriptors;
pub mod echo;
mod engine;
pub mod example;
pub mod http;
mod jwks;
mod metrics;
mod realtime;
mod server;
pub mod shard;
mod tls;

pub use fanwire_api as api;
pub use fanwire_brokers as brokers;
pub use fanwire_node as node;
pub use fanwire_protocol as protocol;
pub use fanwire_ws as ws;
pub use server::{Server, StartError};
