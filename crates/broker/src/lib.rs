//! The ports of a node: broker and presence with memory engines and conformance suites, bus and revocation store without.
//! In: calls of a node → out: ready or pending answers; publications, in one order per channel.
//! Uses `protocol`. Never: sessions, sockets, a clock of its own (time is a parameter).
//! Changed here: the list of ports. An engine outside this process is a crate of its own, such as `redis`.
#![forbid(unsafe_code)]

mod answer;
mod broker;
mod bus;
mod chance;
mod client_id;
mod deliver;
mod delivery_class;
mod delta;
mod error;
mod growing;
mod memory_engine;
mod node_message;
mod position;
mod presence;
mod revocations;
mod saved;
mod user_statuses;

/// The tests that every engine must pass, for crates that implement one.
#[cfg(any(test, feature = "conformance"))]
pub mod conformance {
    pub use crate::broker::conformance as broker;
    pub use crate::broker::map::conformance as map;
    pub use crate::presence::conformance as presence;
    pub use crate::user_statuses::conformance as user_statuses;
}

pub use answer::{Abandoned, Answer, Promise};
pub use broker::map;
pub use broker::{
    Broker, Bucket, ChangeMarks, ChangesSince, KeyOwner, MemoryBroker, MemoryState, PublishOptions,
    Query, RestoreOptions, Retention, SNAPSHOT_VERSION, Snapshot, SnapshotError, SnapshotHead,
    SnapshotTotals, StreamSlice, SuppressedCounters, SuppressedCounts, Suppression,
};
pub use bus::Bus;
pub use chance::{Chance, SystemChance};
pub use client_id::ClientId;
pub use deliver::{Change, Deliver, DeliverOptions};
pub use delivery_class::DeliveryClass;
pub use delta::Delta;
pub use error::BrokerError;
pub use growing::{Append, AppendError, AppendLimits, Appended, FINAL_TTL, Fragment};
pub use memory_engine::MemoryEngine;
pub use node_message::{DebugForCommand, OccupancyReport, Renewal};
pub use position::{Epoch, Position};
pub use presence::{MemoryPresence, Presence, PresencePage, PresenceStats};
pub use revocations::{
    RevocationChange, RevocationCursor, RevocationEvent, RevocationKind, RevocationListener,
    RevocationPage, RevocationStore,
};
pub use saved::SnapshotClock;
pub use user_statuses::{MemoryUserStatuses, UserStatus, UserStatusChange, UserStatusStore};
