//! Fanwire's node: sessions, channels and hubs between the encoded command and the encoded push, without sockets or clocks.
//! In: decoded WebSocket messages, API calls and `now` → out: replies, broadcasts and disconnects through `Outbox` and `Inbox`.
//! Uses: `fanwire-protocol`. Never: sockets, `ws`, `deflate`, HTTP, a clock of its own (one anchor, see `Node::new`).
//! Change here: the list of rooms. Start at `hub.rs` for one shard, `node.rs` for all of them.
#![forbid(unsafe_code)]

pub mod broker;
pub mod channel;
#[doc(hidden)]
pub mod fuzzing;
pub mod options;
pub mod presence;
pub mod token;

mod announcement;
mod answer;
mod broadcast;
mod clock;
mod cluster;
mod command;
mod counters;
mod deliver;
mod delta;
mod errand;
mod filter;
mod glob;
mod hub;
mod limits;
mod meters;
mod node;
mod notice;
mod outbox;
mod recovery;
mod registry;
mod roster;
mod session;
mod waiting;
mod wheel;

pub use fanwire_protocol as protocol;

pub use announcement::{Announcement, Change};
pub use answer::{Abandoned, Answer, Promise};
pub use broadcast::{Broadcast, Prepare, Prepared, Shape};
pub use broker::{Epoch, Position, PublishOptions, Stretch};
pub use channel::NamespaceId;
pub use cluster::{Bus, Metrics, NodeState};
pub use counters::{CommandKind, Counter, HubCounters, TokenRefusal};
pub use deliver::Deliver;
pub use delta::Delta;
pub use errand::Errand;
pub use hub::Hub;
pub use meters::{Meters, Reading, ReadingKind};
pub use node::{Counts, Node, Page};
pub use notice::{Inbox, Notice, Renewal, ServerSubscription, ShardId, SubscribeOrder, Target};
pub use options::{Options, OptionsError};
pub use outbox::Outbox;
pub use presence::PresenceStats;
pub use session::{ClientId, ConnectionKey, Hello};
pub use waiting::Arrival;
