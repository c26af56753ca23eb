//! Fanwire's node: sessions, channels and hubs between the encoded command and the encoded push, without sockets or clocks.
//! In: WebSocket messages, API calls and `now` → out: replies, broadcasts and disconnects through `Outbox` and `Inbox`.
//! Uses: `fanwire-protocol`. Never: sockets, `ws`, `deflate`, HTTP, a clock of its own (one anchor, see `Node::new`).
//! Changed here: the list of modules. Start at `hub.rs` for one shard, `node.rs` for all of them.
//!
//! A node with one shard. Its shell owns the inbox, calls the hub and carries out its effects:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use std::time::Instant;
//!
//! use fanwire_node::broker::PublishOptions;
//! use fanwire_node::protocol::{Disconnect, Encoding, Publication};
//! use fanwire_node::{
//!     Broadcast, ConnectionKey, DeltaMode, ConnectionInfo, Hub, Inbox, Node, Notice, Options, Outbox, CommandSource,
//!     SubscriptionIndex,
//! };
//!
//! #[derive(Default)]
//! struct Notices(Mutex<Vec<Notice>>);
//!
//! impl Inbox for Notices {
//!     fn push(&self, notice: Notice) {
//!         self.0.lock().unwrap().push(notice); // and wake the shard
//!     }
//! }
//!
//! /// Keeps what would be written to the one connection.
//! #[derive(Default)]
//! struct Written(Vec<String>);
//!
//! impl Outbox for Written {
//!     fn send(&mut self, _: ConnectionKey, message: &[u8]) {
//!         self.0.push(String::from_utf8_lossy(message).into_owned());
//!     }
//!
//!     fn deliver(&mut self, _: u32, _: SubscriptionIndex, broadcast: &Arc<Broadcast>, delta_mode: DeltaMode) {
//!         let message = broadcast.message_in(delta_mode, Encoding::Json).expect("it has that form");
//!         self.0.push(String::from_utf8_lossy(message).into_owned());
//!     }
//!
//!     fn ping(&mut self, _: ConnectionKey) {}
//!
//!     fn disconnect(&mut self, _: ConnectionKey, _: &Disconnect) {}
//! }
//!
//! let mut options = Options::default();
//! options.client.insecure = true; // every permission is granted
//! let node = Node::new(options)?;
//! let (notices, now) = (Arc::new(Notices::default()), Instant::now());
//! let shard = node.attach(notices.clone());
//! let (mut hub, mut written) = (Hub::new(node.clone(), shard), Written::default());
//!
//! let key = ConnectionKey { index: 0, generation: 0 };
//! let (encoding, command_source, transport, headers) = (Encoding::Json, CommandSource::Connection, "websocket", Vec::new());
//! let connection = ConnectionInfo { encoding, frame_ping: false, transport, command_source, user: None, last_event_id: None, headers };
//! hub.open(key, connection, now);
//! hub.receive(key, br#"{"id":1,"connect":{}}"#, now, &mut written);
//! hub.receive(key, br#"{"id":2,"subscribe":{"channel":"news"}}"#, now, &mut written);
//! assert_eq!(written.0[1], r#"{"id":2,"subscribe":{}}"#);
//!
//! let publication = Publication { data: "[1]".into(), ..Publication::default() };
//! node.channels().publish("news", publication, PublishOptions::default(), now).wait()?;
//! for notice in std::mem::take(&mut *notices.0.lock().unwrap()) {
//!     hub.notice(notice, now, &mut written);
//! }
//! assert_eq!(written.0[2], r#"{"push":{"channel":"news","pub":{"data":[1]}}}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;

mod broadcast;
mod client_apps;
mod clock;
mod command;
mod counters;
mod deadlines;
mod deliver;
mod delta;
mod encode_job;
mod flight_log;
mod hub;
mod index;
mod join_leave;
mod last_event_id;
mod map;
mod map_presence;
mod map_release;
mod meters;
mod node;
mod notice;
mod outbox;
mod pending;
mod refusal;
mod registry;
mod session;
mod session_effects;
mod session_record;
mod session_table;
mod shard_question;
mod shared_replies;
mod subscribers;
mod wheel;

pub use fanwire_area as area;
pub use fanwire_auth as auth;
pub use fanwire_broker as broker;
pub use fanwire_protocol as protocol;
pub use fanwire_recorder::log_file;

pub use fanwire_policy::channel::{self, NamespaceId};
pub use fanwire_policy::filter::check_filter;
pub use fanwire_policy::hooks;
pub use fanwire_policy::options::{self, Options};
pub use fanwire_policy::recovery::Unrecovered;
pub use fanwire_policy::shared_poll;
pub use fanwire_policy::{AddressCounts, AddressFull, AddressPlace, ExceededCounts};
pub use fanwire_policy::{DEBUG_FOR_TARGET, DebugSubject, TokenBucket};

pub use broadcast::{Broadcast, DeltaMode, Prepare, Prepared};
pub use counters::{CommandKind, DeliveryCounters, HubCounters, TokenErrorKind};
pub use encode_job::EncodeJob;
pub use fanwire_broker::{
    DebugForCommand, OccupancyReport, Renewal, RevocationChange, RevocationKind, UserStatus,
};
pub use fanwire_cluster::{
    ConnectionSelector, Departures, Metrics, NodeState, PeersError, RebalanceOptions, Receipt,
    ReceiptRecord, SendAwayCommand, ServerSubscribe, ServerSubscription, Surveyed,
};
pub use flight_log::read_closed_logs;
pub use hub::{Hub, can_move, choose_departures};
pub use index::{MovedSubscription, SubscriptionIndex};
pub use join_leave::JoinLeave;
pub use last_event_id::LastEventId;
pub use meters::Meters;
pub use node::{
    BrokerFactory, ChannelPublisher, Channels, ConnectionCommands, Counts, Diagnostics,
    KeepClosedLog, Maps, NamespaceUsage, Node, NodeLog, NodeParts, Page, ReadError, ReadPermit,
    ReadRequest, Rebalancing, RefusalLevel, RevocationError, Revocations, SharedPolls, TenantUsage,
    Users, is_key, questions, save_peers, take_over_peers,
};
pub use notice::{Inbox, Notice};
pub use outbox::Outbox;
pub use pending::AwaitedResult;
pub use registry::ShardId;
pub use session::{CommandSource, ConnectionInfo, ConnectionKey};
pub use session_record::SESSION_FORMAT;
pub use session_table::selection::SelectedConnections;
pub use subscribers::PositionCheck;
