//! One event, and how a batch of events is written.
//! In: facts about a client, a channel or a node → out: JSON.
//! Uses serde. Never: a queue.
//! Changed here: types of events and their fields.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_node::protocol::ClientInfo;
use serde::Serialize;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    Connected,
    Disconnected,
    Subscribed,
    Unsubscribed,
    /// The channel has its first subscriber on any node.
    Occupied,
    /// The channel has no subscriber on any node any more.
    Vacated,
    /// All occupied channels follow, each as `Occupied`.
    RecountStarted,
    /// Channels that were not `Occupied` since the recount started are vacant.
    RecountEnded,
    /// The node `node` begins: it has no clients yet.
    NodeStarted,
    /// The node `node` is gone with all its clients.
    NodeGone,
    /// The node `node` was reported as gone, but lives, with its clients.
    NodeReturned,
    /// Events did not fit into the queue, `count` of them, at this point.
    Lost,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutgoingEvent {
    /// Counts the events of a node from 1; a repeated event has the same number.
    pub seq: u64,
    /// Unix milliseconds.
    pub time: u64,
    pub r#type: EventType,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Arc<str>>,
    /// Code of a disconnect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The node that begins, is gone or returned.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub count: u64,
}

#[derive(Serialize)]
struct EventBatch<'a> {
    node: &'a str,
    events: Vec<&'a OutgoingEvent>,
}

impl EventType {
    pub const ALL: [Self; 12] = [
        Self::Connected,
        Self::Disconnected,
        Self::Subscribed,
        Self::Unsubscribed,
        Self::Occupied,
        Self::Vacated,
        Self::RecountStarted,
        Self::RecountEnded,
        Self::NodeStarted,
        Self::NodeGone,
        Self::NodeReturned,
        Self::Lost,
    ];

    /// Whether it is about occupied channels, which one node tells for all.
    pub(crate) fn is_of_occupancy(self) -> bool {
        matches!(self, Self::Occupied | Self::Vacated | Self::RecountStarted | Self::RecountEnded)
    }

    /// The name in JSON, and in `events.types`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Disconnected => "disconnected",
            Self::Subscribed => "subscribed",
            Self::Unsubscribed => "unsubscribed",
            Self::Occupied => "occupied",
            Self::Vacated => "vacated",
            Self::RecountStarted => "recount_started",
            Self::RecountEnded => "recount_ended",
            Self::NodeStarted => "node_started",
            Self::NodeGone => "node_gone",
            Self::NodeReturned => "node_returned",
            Self::Lost => "lost",
        }
    }

    /// The type with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl OutgoingEvent {
    pub(crate) fn new(r#type: EventType) -> Self {
        Self {
            seq: 0,
            time: 0,
            r#type,
            client: None,
            user: None,
            channel: None,
            code: None,
            reason: String::new(),
            node: String::new(),
            count: 0,
        }
    }

    pub(crate) fn of_client(r#type: EventType, client: ClientInfo) -> Self {
        Self { client: Some(client.client), user: Some(client.user), ..Self::new(r#type) }
    }

    pub(crate) fn of_channel(r#type: EventType, channel: &Arc<str>) -> Self {
        Self { channel: Some(Arc::clone(channel)), ..Self::new(r#type) }
    }

    pub(crate) fn of_node(r#type: EventType, node: String) -> Self {
        Self { node, ..Self::new(r#type) }
    }

    pub(crate) fn lost(count: u64) -> Self {
        Self { count, ..Self::new(EventType::Lost) }
    }
}

/// The body of a request.
pub(crate) fn encode(node: &str, events: Vec<&OutgoingEvent>) -> Bytes {
    let batch = EventBatch { node, events };
    serde_json::to_vec(&batch).expect("keys are texts, and values have JSON forms").into()
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
