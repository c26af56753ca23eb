//! The table of API methods, and the commands and outcomes that travel between faces and methods.
//! In: a method and its JSON parameters. Out: a `Command` for `Api::run`, and an `Outcome` that serialises.
//! Knows JSON through serde only; never HTTP.
//! A method is one row here, one variant each of `Command` and `Outcome`, and one file `method/NAME.rs`.

pub(crate) mod batch;
pub(crate) mod broadcast;
pub(crate) mod channels;
pub(crate) mod disconnect;
pub(crate) mod history;
pub(crate) mod history_remove;
pub(crate) mod info;
pub(crate) mod presence;
pub(crate) mod presence_stats;
pub(crate) mod publish;
pub(crate) mod rpc;
pub(crate) mod unsubscribe;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::json::Object;
use batch::{BatchReply, BatchRequest};
use broadcast::{BroadcastRequest, BroadcastResult};
use channels::{ChannelsRequest, ChannelsResult};
use disconnect::{DisconnectRequest, DisconnectResult};
use history::{HistoryRequest, HistoryResult};
use history_remove::{HistoryRemoveRequest, HistoryRemoveResult};
use info::{InfoRequest, InfoResult};
use presence::{PresenceRequest, PresenceResult};
use presence_stats::{PresenceStatsRequest, PresenceStatsResult};
use publish::{PublishRequest, PublishResult};
use rpc::{RpcRequest, RpcResult};
use unsubscribe::{UnsubscribeRequest, UnsubscribeResult};

/// A method of the server API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Publish,
    Broadcast,
    Subscribe,
    Unsubscribe,
    Disconnect,
    Presence,
    PresenceStats,
    History,
    HistoryRemove,
    Info,
    Rpc,
    Refresh,
    Channels,
    Batch,
    MapPublish,
    MapRemove,
    MapReadState,
    MapReadStream,
    MapStats,
    MapClear,
    SharedPollPublish,
}

impl Method {
    /// Every method, in the order of the variants.
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::Publish; TABLE.len()];
        let mut index = 0;
        while index < TABLE.len() {
            all[index] = TABLE[index].method;
            assert!(all[index] as usize == index, "the table has the order of the variants");
            index += 1;
        }
        all
    };

    /// Its name in paths, batches and metrics.
    pub fn name(self) -> &'static str {
        TABLE[self.index()].name
    }

    /// The method of that exact name.
    pub fn of_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.method)
    }

    /// The method of that number on the legacy path; batch has none.
    pub fn of_legacy_number(number: u64) -> Option<Self> {
        TABLE.iter().find(|row| row.legacy_number == Some(number)).map(|row| row.method)
    }

    /// Its place in `ALL`.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether it has no required field, so that an empty body is as good as `{}`. Methods that would then reach
    /// every anonymous connection (disconnect, unsubscribe) are not among them.
    pub(crate) fn takes_empty_body(self) -> bool {
        matches!(self, Self::Info | Self::Channels)
    }
}

/// A decoded call.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Publish(PublishRequest),
    Broadcast(BroadcastRequest),
    Unsubscribe(UnsubscribeRequest),
    Disconnect(DisconnectRequest),
    Presence(PresenceRequest),
    PresenceStats(PresenceStatsRequest),
    History(HistoryRequest),
    HistoryRemove(HistoryRemoveRequest),
    Info(InfoRequest),
    Rpc(RpcRequest),
    Channels(ChannelsRequest),
    Batch(BatchRequest),
    /// A known method that is not built yet; its parameters are skipped.
    Unavailable(Method),
}

/// What a call returns; serialised inside a batch as `{"method":{…}}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Publish(PublishResult),
    Broadcast(BroadcastResult),
    Unsubscribe(UnsubscribeResult),
    Disconnect(DisconnectResult),
    Presence(PresenceResult),
    PresenceStats(PresenceStatsResult),
    History(HistoryResult),
    HistoryRemove(HistoryRemoveResult),
    Info(InfoResult),
    Rpc(RpcResult),
    Channels(ChannelsResult),
    Batch(BatchReply),
}

/// Decodes the parameters of a method; JSON null gives `None`.
impl<'de> DeserializeSeed<'de> for Method {
    type Value = Option<Command>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Command>, D::Error> {
        match self {
            Self::Publish => parameters(from, Command::Publish),
            Self::Broadcast => parameters(from, Command::Broadcast),
            Self::Unsubscribe => parameters(from, Command::Unsubscribe),
            Self::Disconnect => parameters(from, Command::Disconnect),
            Self::Presence => parameters(from, Command::Presence),
            Self::PresenceStats => parameters(from, Command::PresenceStats),
            Self::History => parameters(from, Command::History),
            Self::HistoryRemove => parameters(from, Command::HistoryRemove),
            Self::Info => parameters(from, Command::Info),
            Self::Rpc => parameters(from, Command::Rpc),
            Self::Channels => parameters(from, Command::Channels),
            Self::Batch => parameters(from, Command::Batch),
            _ => Ok(Option::<IgnoredAny>::deserialize(from)?.map(|_| Command::Unavailable(self))),
        }
    }
}

fn parameters<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    command: fn(T) -> Command,
) -> Result<Option<Command>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(from)?.map(|object| command(object.0)))
}

struct Row {
    method: Method,
    name: &'static str,
    legacy_number: Option<u64>,
}

const fn row(method: Method, name: &'static str, legacy_number: Option<u64>) -> Row {
    Row { method, name, legacy_number }
}

const TABLE: [Row; 21] = [
    row(Method::Publish, "publish", Some(0)),
    row(Method::Broadcast, "broadcast", Some(1)),
    row(Method::Subscribe, "subscribe", Some(11)),
    row(Method::Unsubscribe, "unsubscribe", Some(2)),
    row(Method::Disconnect, "disconnect", Some(3)),
    row(Method::Presence, "presence", Some(4)),
    row(Method::PresenceStats, "presence_stats", Some(5)),
    row(Method::History, "history", Some(6)),
    row(Method::HistoryRemove, "history_remove", Some(7)),
    row(Method::Info, "info", Some(9)),
    row(Method::Rpc, "rpc", Some(10)),
    row(Method::Refresh, "refresh", Some(12)),
    row(Method::Channels, "channels", Some(8)),
    row(Method::Batch, "batch", None),
    row(Method::MapPublish, "map_publish", Some(33)),
    row(Method::MapRemove, "map_remove", Some(34)),
    row(Method::MapReadState, "map_read_state", Some(35)),
    row(Method::MapReadStream, "map_read_stream", Some(36)),
    row(Method::MapStats, "map_stats", Some(37)),
    row(Method::MapClear, "map_clear", Some(38)),
    row(Method::SharedPollPublish, "shared_poll_publish", Some(39)),
];
