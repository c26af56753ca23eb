//! The kinds of events, with the messages and the gRPC method of each.
//! In: nothing → out: what a call needs to know about its message, and the parts of a response.
//! Uses the messages of `protocol::proxy`. Never: what a field means.
//! Changed here: a new kind of event is a row of the macro.

use fanwire_protocol::proxy as pb;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The kind of an event, in the order of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Connect,
    Refresh,
    Subscribe,
    Publish,
    Rpc,
    SubRefresh,
    SubscribeStream,
    SharedPollRefresh,
    MapPublish,
    MapRemove,
}

impl EventKind {
    pub(crate) const ALL: [Self; 10] = [
        Self::Connect,
        Self::Refresh,
        Self::Subscribe,
        Self::Publish,
        Self::Rpc,
        Self::SubRefresh,
        Self::SubscribeStream,
        Self::SharedPollRefresh,
        Self::MapPublish,
        Self::MapRemove,
    ];

    /// The label `type` of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Refresh => "refresh",
            Self::Subscribe => "subscribe",
            Self::Publish => "publish",
            Self::Rpc => "rpc",
            Self::SubRefresh => "sub_refresh",
            Self::SubscribeStream => "subscribe_stream",
            Self::SharedPollRefresh => "shared_poll_refresh",
            Self::MapPublish => "map_publish",
            Self::MapRemove => "map_remove",
        }
    }
}

/// A message to a backend.
pub(crate) trait ProxyRequest: Message + Serialize + Clone + 'static {
    type Response: ProxyResponse;
    const KIND: EventKind;
    /// Path of the gRPC method.
    const PATH: &'static str;
}

/// A message from a backend.
pub(crate) trait ProxyResponse:
    Message + DeserializeOwned + Default + PartialEq + 'static
{
    type Result;

    /// Result, error and disconnect.
    fn into_parts(self) -> (Option<Self::Result>, Option<pb::Error>, Option<pb::Disconnect>);
}

macro_rules! events {
    ($($kind:ident, $method:literal, $request:ident => $response:ident;)*) => {
        $(impl ProxyRequest for pb::$request {
            type Response = pb::$response;
            const KIND: EventKind = EventKind::$kind;
            const PATH: &'static str =
                concat!("/centrifugal.centrifugo.proxy.CentrifugoProxy/", $method);
        })*
    };
}

macro_rules! responses {
    ($($response:ident => $result:ident;)*) => {
        $(impl ProxyResponse for pb::$response {
            type Result = pb::$result;

            fn into_parts(self) -> (Option<pb::$result>, Option<pb::Error>, Option<pb::Disconnect>) {
                (self.result, self.error, self.disconnect)
            }
        })*
    };
}

events! {
    Connect, "Connect", ConnectRequest => ConnectResponse;
    Refresh, "Refresh", RefreshRequest => RefreshResponse;
    Subscribe, "Subscribe", SubscribeRequest => SubscribeResponse;
    Publish, "Publish", PublishRequest => PublishResponse;
    Rpc, "RPC", RpcRequest => RpcResponse;
    SubRefresh, "SubRefresh", SubRefreshRequest => SubRefreshResponse;
    MapPublish, "MapPublish", MapPublishRequest => MapPublishResponse;
    MapRemove, "MapRemove", MapRemoveRequest => MapRemoveResponse;
    SharedPollRefresh, "SharedPollRefresh", SharedPollRefreshRequest => SharedPollRefreshResponse;
}

responses! {
    ConnectResponse => ConnectResult;
    RefreshResponse => RefreshResult;
    SubscribeResponse => SubscribeResult;
    SubRefreshResponse => SubRefreshResult;
    PublishResponse => PublishResult;
    RpcResponse => RpcResult;
    MapPublishResponse => MapPublishResult;
    MapRemoveResponse => MapRemoveResult;
}

/// A poll is no event of a client, so there is no disconnect.
impl ProxyResponse for pb::SharedPollRefreshResponse {
    type Result = pb::SharedPollRefreshResult;

    fn into_parts(self) -> (Option<Self::Result>, Option<pb::Error>, Option<pb::Disconnect>) {
        (self.result, self.error, None)
    }
}
