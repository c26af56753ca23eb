//! The table of API methods, and the commands and outcomes that travel between faces and methods.
//! In: a method and its JSON parameters. Out: a `Command` for `Api::run`, and an `Outcome` that serialises.
//! Knows JSON through serde only; never HTTP.
//! A method is one row of the table below and one file `method/NAME.rs`.

pub(crate) mod batch;
pub(crate) mod broadcast;
pub(crate) mod channels;
pub(crate) mod disconnect;
pub(crate) mod history;
pub(crate) mod history_remove;
pub(crate) mod info;
pub(crate) mod other_kind;
pub(crate) mod presence;
pub(crate) mod presence_stats;
pub(crate) mod publish;
pub(crate) mod refresh;
pub(crate) mod rpc;
pub(crate) mod subscribe;
pub(crate) mod unsubscribe;

use schemars::{Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::json::Object;
use crate::{Api, ApiError};
use batch::{BatchReply, BatchRequest};
use broadcast::{BroadcastRequest, BroadcastResult};
use channels::{ChannelsRequest, ChannelsResult};
use disconnect::{DisconnectRequest, DisconnectResult};
use history::{HistoryRequest, HistoryResult};
use history_remove::{HistoryRemoveRequest, HistoryRemoveResult};
use info::{InfoRequest, InfoResult};
use other_kind::OtherKindRequest;
use presence::{PresenceRequest, PresenceResult};
use presence_stats::{PresenceStatsRequest, PresenceStatsResult};
use publish::{PublishRequest, PublishResult};
use refresh::{RefreshRequest, RefreshResult};
use rpc::{RpcRequest, RpcResult};
use subscribe::{SubscribeRequest, SubscribeResult};
use unsubscribe::{UnsubscribeRequest, UnsubscribeResult};

/// Makes the enums and their dispatch out of one row per method: its variant and file, request and result, number
/// on the legacy path, and one sentence. Rows under `other_kind` are methods of channels of a kind that is not built.
macro_rules! methods {
    (
        built { $($method:ident = $run:ident($request:ty) -> $result:ty, $legacy:expr, $summary:literal;)* }
        other_kind { $($other:ident = $other_name:ident, $other_legacy:expr;)* }
    ) => {
        /// A method of the server API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $($method,)* $($other,)*
        }

        const TABLE: &[Row] = &[
            $(row(Method::$method, stringify!($run), $legacy),)*
            $(row(Method::$other, stringify!($other_name), $other_legacy),)*
        ];

        /// A decoded call.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Command {
            $($method($request),)*
            /// A method of map or shared poll channels, which no namespace here is of.
            OtherKind(Method, OtherKindRequest),
        }

        /// What a call returns; serialised inside a batch as `{"method":{…}}`.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Outcome {
            $($method($result),)*
        }

        impl Outcome {
            /// Serialises the result without the name of its method.
            pub(crate) fn serialize_bare<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$method(result) => result.serialize(to),)*
                }
            }
        }

        /// Decodes the parameters of a method; JSON null gives `None`.
        impl<'de> DeserializeSeed<'de> for Method {
            type Value = Option<Command>;

            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Command>, D::Error> {
                match self {
                    $(Self::$method => parameters(from, Command::$method),)*
                    $(Self::$other => parameters(from, |request| Command::OtherKind(self, request)),)*
                }
            }
        }

        /// What the document of the API says about each method that is built.
        pub(crate) const DESCRIPTIONS: &[Description] = &[
            $(Description {
                method: Method::$method,
                summary: $summary,
                request: SchemaGenerator::subschema_for::<$request>,
                result: SchemaGenerator::subschema_for::<$result>,
            },)*
        ];

        impl Api {
            /// Runs one command, whichever it is.
            ///
            /// # Errors
            /// The error of the method.
            pub async fn run(&self, command: Command) -> Result<Outcome, ApiError> {
                match command {
                    $(Command::$method(request) => self.$run(request).await.map(Outcome::$method),)*
                    Command::OtherKind(method, request) => match self.other_kind(method, request)? {},
                }
            }
        }
    };
}

methods! {
    built {
        Publish = publish(PublishRequest) -> PublishResult, Some(0),
            "Publishes to all subscribers of one channel.";
        Broadcast = broadcast(BroadcastRequest) -> BroadcastResult, Some(1),
            "Publishes the same data into many channels.";
        Unsubscribe = unsubscribe(UnsubscribeRequest) -> UnsubscribeResult, Some(2),
            "Takes the connections of a user out of one channel, or out of all.";
        Disconnect = disconnect(DisconnectRequest) -> DisconnectResult, Some(3),
            "Closes the connections of a user.";
        Presence = presence(PresenceRequest) -> PresenceResult, Some(4),
            "Tells who is in a channel.";
        PresenceStats = presence_stats(PresenceStatsRequest) -> PresenceStatsResult, Some(5),
            "Counts who is in a channel.";
        History = history(HistoryRequest) -> HistoryResult, Some(6),
            "Reads stored publications and the position of a channel.";
        HistoryRemove = history_remove(HistoryRemoveRequest) -> HistoryRemoveResult, Some(7),
            "Drops the stored publications of a channel; offset and epoch stay.";
        Channels = channels(ChannelsRequest) -> ChannelsResult, Some(8),
            "Lists the channels that have subscribers, for debugging.";
        Info = info(InfoRequest) -> InfoResult, Some(9),
            "Tells name, version and counts of every node.";
        Rpc = rpc(RpcRequest) -> RpcResult, Some(10),
            "Calls a function registered in the server.";
        Subscribe = subscribe(SubscribeRequest) -> SubscribeResult, Some(11),
            "Subscribes the connections of a user to a channel.";
        Refresh = refresh(RefreshRequest) -> RefreshResult, Some(12),
            "Gives the connections of a user another end, or closes them as expired.";
        Batch = batch(BatchRequest) -> BatchReply, None,
            "Runs several commands; each has its own result or error.";
    }
    other_kind {
        MapPublish = map_publish, Some(33);
        MapRemove = map_remove, Some(34);
        MapReadState = map_read_state, Some(35);
        MapReadStream = map_read_stream, Some(36);
        MapStats = map_stats, Some(37);
        MapClear = map_clear, Some(38);
        SharedPollPublish = shared_poll_publish, Some(39);
    }
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

fn parameters<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    command: impl FnOnce(T) -> Command,
) -> Result<Option<Command>, D::Error> {
    Ok(Option::<Object<T>>::deserialize(from)?.map(|object| command(object.0)))
}

/// One method in the document of the API.
pub(crate) struct Description {
    pub(crate) method: Method,
    /// One sentence.
    pub(crate) summary: &'static str,
    pub(crate) request: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) result: fn(&mut SchemaGenerator) -> Schema,
}

struct Row {
    method: Method,
    name: &'static str,
    legacy_number: Option<u64>,
}

const fn row(method: Method, name: &'static str, legacy_number: Option<u64>) -> Row {
    Row { method, name, legacy_number }
}
