//! Fanwire as a library: the server of the Centrifugo client protocol and server API.
//! In: a `Config` → out: a running `Server` with its shards, its HTTP services and its metrics.
//! Uses every crate below it. Never: protocol, compression or channel rules of its own.
//! Changed here: the public interface of the library. Each concern lives in the module of its name.
//!
//! ```no_run
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let config = fanwire::config::Config::default();
//! let server = fanwire::Server::start(config).await?;
//! println!("listening on {}", server.address());
//! server.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! A program without an async runtime starts an [`EmbeddedServer`]. Both have a [`Handle`], with which any thread
//! publishes, reads history and presence, and subscribes or disconnects clients; [`Hooks`] decide who may connect, subscribe,
//! publish and call.
#![forbid(unsafe_code)]

mod builder;
mod compression;
mod embedded;
mod engine;
mod error;
pub mod example;
mod handle;
mod hooks;
mod http;
mod jwks;
mod metrics;
mod readiness;
mod rooms;
mod server;

pub use fanwire_api as api;
pub use fanwire_auth as auth;
pub use fanwire_broker as broker;
pub use fanwire_brokers as brokers;
pub use fanwire_config as config;
pub use fanwire_node as node;
pub use fanwire_protocol as protocol;
pub use fanwire_room as room;
pub use fanwire_shard as shard;
pub use fanwire_ws as ws;

pub use builder::Builder;
pub use embedded::EmbeddedServer;
pub use error::StartError;
pub use fanwire_auth::{ChannelGrant, Overrides};
pub use fanwire_broker::{Answer, DeliveryClass, Position, PublishOptions};
pub use fanwire_cluster::{ConnectionSelector, Renewal, ServerSubscription};
pub use fanwire_node::{
    Page,
    hooks::{
        ConnectEvent, ConnectGrant, PublishEvent, PublishGrant, RefreshEvent, Rejection, RpcEvent,
        SubscribeEvent, SubscribeGrant,
    },
};
pub use fanwire_protocol::{ClientInfo, Disconnect, Error, ErrorCode, Publication};
pub use handle::Handle;
pub use hooks::{Decision, DisconnectEvent, Hook, Hooks};
pub use rooms::{RoomError, RoomOptions, RoomStats, Rooms};
pub use server::Server;

/// The code of the page is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rooms.md")]
struct RoomsPage;
