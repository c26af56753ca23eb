//! The table of API methods with parameters and results, and the commands and outcomes that `http` passes to and from them.
//! In: a method and its JSON parameters. Out: a `Command` for `Api::run`, and an `Outcome` that serialises.
//! Uses JSON through serde only; never HTTP.
//! A method is one row of the table in `names.rs` and one file `method/NAME.rs`.

pub(crate) mod append;
pub(crate) mod batch;
pub(crate) mod broadcast;
pub(crate) mod channels;
pub(crate) mod cluster_clock;
pub(crate) mod connection_log;
pub(crate) mod connections;
pub(crate) mod debug_for;
pub(crate) mod delete_user_status;
pub(crate) mod disconnect;
pub(crate) mod dump;
pub(crate) mod get_user_status;
pub(crate) mod history;
pub(crate) mod history_remove;
pub(crate) mod hot_lists;
pub(crate) mod info;
pub(crate) mod map_reads;
pub(crate) mod map_writes;
pub(crate) mod node_config;
mod paging;
pub(crate) mod presence;
pub(crate) mod presence_stats;
pub(crate) mod publication_report;
pub(crate) mod publish;
pub(crate) mod rebalance;
pub(crate) mod refresh;
pub(crate) mod revocations;
pub(crate) mod rpc;
mod selector;
pub(crate) mod set_view;
pub(crate) mod shared_poll_publish;
pub(crate) mod snapshot;
pub(crate) mod subscribe;
pub(crate) mod unsubscribe;
pub(crate) mod update_user_status;

use fanwire_node::protocol::{AnyCase, without_halves};
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Deserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::names::method_table;
use crate::{Api, ApiError, Method, NodeConfigResult};
use append::{AppendRequest, AppendResult};
use batch::{BatchReply, BatchRequest};
use broadcast::{BroadcastRequest, BroadcastResult};
use channels::{ChannelsRequest, ChannelsResult};
use cluster_clock::{ClusterClockRequest, ClusterClockResult};
use connection_log::{ConnectionLogRequest, ConnectionLogResult};
use connections::{ConnectionsRequest, ConnectionsResult};
use debug_for::{DebugForRequest, DebugForResult};
use delete_user_status::DeleteUserStatusRequest;
use disconnect::DisconnectRequest;
use dump::{DumpRequest, DumpResult};
use get_user_status::{GetUserStatusRequest, GetUserStatusResult};
use history::{HistoryRequest, HistoryResult};
use history_remove::HistoryRemoveRequest;
use hot_lists::{HotListsRequest, HotListsResult};
use info::{InfoRequest, InfoResult};
use map_reads::{
    MapReadStateRequest, MapReadStateResult, MapReadStreamRequest, MapReadStreamResult,
    MapStatsRequest, MapStatsResult,
};
use map_writes::{MapChangeResult, MapClearRequest, MapPublishRequest, MapRemoveRequest};
use node_config::NodeConfigRequest;
use presence::{PresenceRequest, PresenceResult};
use presence_stats::{PresenceStatsRequest, PresenceStatsResult};
use publication_report::{PublicationReportRequest, PublicationReportResult};
use publish::{PublishRequest, PublishResult};
use rebalance::{EvacuateRequest, RebalanceRequest};
use refresh::RefreshRequest;
use revocations::{
    BlockUserRequest, InvalidateUserTokensRequest, RevocationResult, RevokeTokenRequest,
    UnblockUserRequest,
};
use rpc::{RpcRequest, RpcResult};
use set_view::SetViewRequest;
use shared_poll_publish::SharedPollPublishRequest;
use snapshot::{SnapshotRequest, SnapshotResult};
use subscribe::SubscribeRequest;
use unsubscribe::UnsubscribeRequest;
use update_user_status::UpdateUserStatusRequest;

/// Empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Empty {}

/// Generates the enums and their dispatch from the rows of [`method_table`]. Rows under `diagnostics` are run by
/// [`DiagnosticMethods`].
macro_rules! methods {
    (
        built {
            $($method:ident = $run:ident($request:ty) -> $result:ty, $summary:literal, $_number:expr;)*
        }
        diagnostics { $($asked:ident = $ask:ident($question:ty) -> $answer:ty, $about:literal;)* }
    ) => {
        /// A decoded call.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Command {
            $($method($request),)*
            $($asked($question),)*
        }

        /// The result of a call; serialised inside a batch as `{"method":{…}}`.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Outcome {
            $($method($result),)*
            $($asked($answer),)*
        }

        impl Command {
            /// The method of the call.
            pub(crate) fn method(&self) -> Method {
                match self {
                    $(Self::$method(_) => Method::$method,)*
                    $(Self::$asked(_) => Method::$asked,)*
                }
            }
        }

        impl Outcome {
            /// Serialises the result without the name of its method.
            pub(crate) fn serialize_bare<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$method(result) => result.serialize(to),)*
                    $(Self::$asked(result) => result.serialize(to),)*
                }
            }
        }

        /// Decodes the parameters of a method; JSON null gives `None`.
        impl<'de> DeserializeSeed<'de> for Method {
            type Value = Option<Command>;

            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Command>, D::Error> {
                match self {
                    $(Self::$method => parameters(from, Command::$method),)*
                    $(Self::$asked => parameters(from, Command::$asked),)*
                }
            }
        }

        /// The methods in the OpenAPI document.
        pub(crate) const DESCRIPTIONS: &[Description] = &[
            $(Description {
                method: Method::$method,
                summary: $summary,
                request: SchemaGenerator::subschema_for::<$request>,
                result: SchemaGenerator::subschema_for::<$result>,
            },)*
            $(Description {
                method: Method::$asked,
                summary: $about,
                request: SchemaGenerator::subschema_for::<$question>,
                result: SchemaGenerator::subschema_for::<$answer>,
            },)*
        ];

        impl Api {
            /// Runs one command. Each method is a future of its own size, which is compiled here alone.
            ///
            /// # Errors
            /// The error of the method.
            pub fn run(&self, command: Command) -> BoxFuture<'_, Result<Outcome, ApiError>> {
                match command {
                    $(Command::$method(request) => {
                        Box::pin(async move { self.$run(request).await.map(Outcome::$method) })
                    })*
                    $(Command::$asked(request) => Box::pin(async move {
                        DiagnosticMethods(self).$ask(request).await.map(Outcome::$asked)
                    }),)*
                }
            }
        }
    };
}

method_table!(methods);

/// Methods that tell what the nodes have recorded and counted.
#[derive(Clone, Copy)]
struct DiagnosticMethods<'a>(&'a Api);

impl Command {
    /// Whether it takes about as long as some publications, so that a thread with connections may run it.
    pub(crate) fn is_short(&self) -> bool {
        match self {
            Self::Broadcast(broadcast) => broadcast.channels.len() <= SHORT_BROADCAST_CHANNELS_MAX,
            Self::Publish(_)
            | Self::Append(_)
            | Self::Subscribe(_)
            | Self::Unsubscribe(_)
            | Self::Disconnect(_)
            | Self::Refresh(_)
            | Self::SetView(_)
            | Self::MapPublish(_)
            | Self::MapRemove(_) => true,
            _ => false,
        }
    }

    /// Whether its reply may be large.
    pub(crate) fn is_read(&self) -> bool {
        matches!(
            self,
            Self::History(_)
                | Self::Presence(_)
                | Self::Channels(_)
                | Self::Connections(_)
                | Self::ConnectionLog(_)
                | Self::Info(_)
                | Self::Snapshot(_)
                | Self::MapReadState(_)
                | Self::MapReadStream(_)
        )
    }
}

/// A broadcast to so many channels takes a fraction of a millisecond.
const SHORT_BROADCAST_CHANNELS_MAX: usize = 256;

impl Method {
    /// Decodes the parameters of a call from JSON text, which may be empty for methods without required fields.
    ///
    /// # Errors
    /// Another text than one JSON object with fields of the right types.
    pub fn decode(self, text: &str) -> Result<Command, serde_json::Error> {
        use serde::de::Error as _;

        let text = if text.is_empty() && self.takes_empty_body() { "{}" } else { text };
        let read = |text: &str| {
            let mut json = serde_json::Deserializer::from_str(text);
            let command = self.deserialize(AnyCase(&mut json))?;
            json.end()?;
            command.ok_or_else(|| serde_json::Error::custom("null is no JSON object"))
        };
        // Backends that cut a text inside a character send half a surrogate pair, which serde_json refuses.
        read(text).or_else(|error| without_halves(text).map_or(Err(error), |text| read(&text)))
    }
}

fn parameters<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    command: impl FnOnce(T) -> Command,
) -> Result<Option<Command>, D::Error> {
    Ok(Option::<T>::deserialize(from)?.map(command))
}

/// One method in the OpenAPI document.
pub(crate) struct Description {
    pub(crate) method: Method,
    /// One sentence.
    pub(crate) summary: &'static str,
    pub(crate) request: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) result: fn(&mut SchemaGenerator) -> Schema,
}
