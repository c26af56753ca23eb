//! The ports behind which publications, presence and messages between nodes live, and their engines in memory.
//! In: calls of a node → out: answers, now or later; publications in one order per channel.
//! Uses `protocol`. Never: sessions, sockets, a clock of its own (time is a parameter).
//! Change here: the list of ports. Engines outside this process live in `brokers`.
#![forbid(unsafe_code)]

mod answer;
mod broker;
mod bus;
mod client_id;
mod deliver;
mod delta;
mod presence;

/// The tests that every engine has to pass, for the crates that bring one.
#[cfg(any(test, feature = "conformance"))]
pub mod conformance {
    pub use crate::broker::conformance as broker;
    pub use crate::presence::conformance as presence;
}

pub use answer::{Abandoned, Answer, Promise};
pub use broker::{
    Broker, BrokerError, Epoch, MemoryBroker, Position, PublishOptions, Query, Retention,
    StreamSlice,
};
pub use bus::Bus;
pub use client_id::ClientId;
pub use deliver::{Change, Deliver};
pub use delta::Delta;
pub use presence::{MemoryPresence, Presence, PresenceStats};
