//! The server API: backends call it to publish and to control connections. Each method is written once.
//! In: typed requests, or HTTP through `http::HttpApi`. Out: typed results or `ApiError`.
//! May use `node`; never sockets, shards or `ws`.
//! A method is changed in `method/NAME.rs`, its HTTP form in `http`; delivery lives in `node`.
#![forbid(unsafe_code)]

mod api;
mod call_span;
mod config_report;
mod counters;
mod envelope;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod grpc;
pub mod http;
mod json;
mod keys;
mod method;
mod names;
mod openapi;
mod options;
mod protobuf;
mod refusals;
mod reply_budget;
mod rights;
mod stream;
mod traced;

pub use api::Api;
pub use config_report::{ConfigReader, ConfigValue, NodeConfigResult};
pub use counters::{Counters, LATENCY_BOUNDS_US, MethodCounts, RequestErrorCounts};
pub use error::ApiError;
pub use fanwire_node::protocol::AnyCase;
pub use keys::KeyHolder;
pub use method::append::{AppendRequest, AppendResult};
pub use method::batch::{BATCH_COMMANDS_MAX, BatchReply, BatchRequest, Reply, ReplyForm};
pub use method::broadcast::{
    BROADCAST_CHANNELS_MAX, BroadcastRequest, BroadcastResult, PublishResponse,
};
pub use method::channels::{ChannelSummary, ChannelsRequest, ChannelsResult};
pub use method::connection_log::ConnectionLog;
pub use method::connections::{
    ConnectionChannel, ConnectionState, ConnectionSummary, ConnectionsRequest, ConnectionsResult,
    TokenSummary,
};
pub use method::delete_user_status::DeleteUserStatusRequest;
pub use method::disconnect::{DisconnectReason, DisconnectRequest};
pub use method::dump::{DumpRequest, DumpResult};
pub use method::get_user_status::{GetUserStatusRequest, GetUserStatusResult, UserStatusItem};
pub use method::history::{Client, HistoryRequest, HistoryResult, Since, StoredPublication};
pub use method::history_remove::HistoryRemoveRequest;
pub use method::info::{InfoRequest, InfoResult, NodeInfo};
pub use method::map_reads::{
    MapReadStateRequest, MapReadStateResult, MapReadStreamRequest, MapReadStreamResult,
    MapStatsRequest, MapStatsResult, StoredMapEntry,
};
pub use method::map_writes::{
    MapChangeResult, MapClearRequest, MapPublishRequest, MapRemoveRequest,
};
pub use method::node_config::NodeConfigRequest;
pub use method::presence::{PresenceRequest, PresenceResult};
pub use method::presence_stats::{PresenceStatsRequest, PresenceStatsResult};
pub use method::publish::{PublishRequest, PublishResult};
pub use method::rebalance::{EvacuateRequest, RebalanceRequest};
pub use method::refresh::RefreshRequest;
pub use method::revocations::{
    BlockUserRequest, InvalidateUserTokensRequest, RevocationResult, RevokeTokenRequest,
    UnblockUserRequest,
};
pub use method::rpc::{RpcRequest, RpcResult};
pub use method::set_view::SetViewRequest;
pub use method::shared_poll_publish::SharedPollPublishRequest;
pub use method::subscribe::{BoolValue, SubscribeOverride, SubscribeRequest};
pub use method::unsubscribe::UnsubscribeRequest;
pub use method::update_user_status::UpdateUserStatusRequest;
pub use method::{Command, Empty, Outcome};
pub use names::Method;
pub use openapi::openapi;
pub use options::{ApiKeyOptions, ApiOptions, BODY_BYTES_MAX, DEFAULT_KEY, ErrorMode, NamedKeys};
pub use stream::{Line, Lines};
pub use traced::consume;
