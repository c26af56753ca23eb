//! A client of the Centrifugo protocol, for Fanwire and Centrifugo, with the names of the Go SDK.
//! In: calls of the application. Out: results of calls, and streams of events of the connection and of each subscription.
//! Uses ws, deflate and protocol for what goes over the wire, tokio and rustls for sockets; never the server's crates.
//! Changed here: what the crate shows. Rules are in `core`, which has no sockets; `driver` executes its orders.
#![forbid(unsafe_code)]

mod address;
mod client;
mod codec;
mod config;
mod core;
mod delta;
mod driver;
mod error;
mod event;
mod transport;

pub use bytes::Bytes;
pub use client::{Client, EventStream, HistoryOptions, Subscription};
pub use config::{ClientConfig, CompressionConfig, GetToken, SubscriptionConfig};
pub use error::{ClientError, GetTokenError};
pub use event::{
    ClientEvent, ClientState, GrowingPart, SubscribedContext, SubscriptionEvent, SubscriptionState,
    code, growing_part,
};
pub use fanwire_deflate::Strategy;
pub use fanwire_protocol::{
    ClientInfo, Encoding, FilterNode, HistoryResult, PresenceResult, PresenceStatsResult,
    ProtocolError, Publication, StreamPosition,
};
pub use fanwire_ws::client::TakeoverOffer;

/// The program in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
