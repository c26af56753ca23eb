//! Fanwire as a library: the server of the Centrifugo client protocol and server API.
//! In: a `Config` → out: a running `Server` with its shards, its HTTP services and its metrics.
//! Uses every crate below it. Never: protocol, compression or channel rules of its own.
//! Changed here: the public interface of the library, each name of which is a line of `api.txt`; `cargo xtask api` compares.
//!
//! A program with a tokio runtime starts a [`Server`], any other program an [`EmbeddedServer`]:
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
//! | task | type |
//! |---|---|
//! | read a configuration from a file, variables and flags | [`config::load`] |
//! | pass a listener, hooks and rooms to a server | [`Builder`] |
//! | publish, read history and presence, disconnect clients, from any thread | [`Handle`] |
//! | decide who connects, subscribes and publishes, answer rpc calls | [`Hooks`] |
//! | run a simulation whose players are subscribers | [`Rooms`] |
//! | let a new program go on with the connections | [`Server::hand_over`], [`Takeover`] |
#![forbid(unsafe_code)]

mod builder;
mod closed_logs;
mod compression;
pub mod config;
mod embedded;
mod engine;
mod error;
mod grpc;
mod handle;
mod hooks;
mod http;
mod readiness;
pub mod room;
mod rooms;
mod server;
mod shedding;
mod snapshots;
mod stats;
mod takeover;

pub use builder::Builder;
pub use embedded::EmbeddedServer;
pub use error::{ServerError, StartError};
pub use handle::{Handle, PublicationOptions};
pub use hooks::{Decision, DisconnectEvent, Hook, Hooks};
pub use rooms::{RoomError, RoomOptions, RoomStats, Rooms};
pub use server::Server;
pub use stats::ServerStats;
pub use takeover::{HandOverError, HandedOver, Takeover};

/// ([example](Hooks))
#[doc(inline)]
pub use fanwire_auth::{ChannelGrant, Overrides};
/// ([example](Hooks))
#[doc(inline)]
pub use fanwire_broker::map::KeyMode;
/// ([example](Handle))
#[doc(inline)]
pub use fanwire_broker::{
    Answer, ClientId, DeliveryClass, Epoch, Position, PresenceStats, StreamSlice,
};
/// ([example](Handle))
#[doc(inline)]
pub use fanwire_cluster::{ConnectionSelector, ServerSubscription};
/// ([example](Handle))
#[doc(inline)]
pub use fanwire_node::{Counts, Page};
/// ([example](Hooks))
#[doc(inline)]
pub use fanwire_policy::hooks::{
    ClientContext, ConnectEvent, ConnectGrant, MapEvent, MapGrant, PublishEvent, PublishGrant,
    RefreshEvent, RefreshGrant, Rejection, RpcEvent, SubscribeEvent, SubscribeGrant,
};
/// ([example](Hooks))
#[doc(inline)]
pub use fanwire_protocol::{ClientInfo, ProtocolError};
/// ([example](Handle))
#[doc(inline)]
pub use fanwire_protocol::{Disconnect, ErrorCode, Publication, StreamPosition};
#[doc(inline)]
pub use fanwire_shard::MovableConnections;

/// The code of the page is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rooms.md")]
struct RoomsPage;
