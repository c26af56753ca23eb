//! subscribe: subscribe connections to a channel, without a permission check.
//! In: `SubscribeRequest`. Out: nothing; the clients get a subscribe push, then publications.
//! Uses the node's subscribe; a target without connections, or with subscribed ones only, is not an error.
//! The node selects the connections of a target and the options of the subscription.

use bytes::Bytes;
use fanwire_auth::Overrides;
use fanwire_node::protocol::StreamPosition;
use fanwire_node::{ConnectionSelector, ServerSubscription};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Empty;
use super::history::Since;
use super::selector::selecting;
use crate::error::NO_CHANNEL;
use crate::json::{or_default, payload, raw_or_none};
use crate::{Api, ApiError, Method, json};

selecting! {
    /// The connections to subscribe, the channel and the options.
    #[schemars(extend("required" = ["channel"]))]
    pub struct SubscribeRequest {
        /// Required.
        #[serde(deserialize_with = "or_default")]
        #[schemars(length(min = 1))]
        pub channel: String,
        /// Unix time in seconds at which the subscription expires; after `client.expired_sub_close_delay` the connection is then
        /// closed with 3006. 0 or less means never, a time in the past is error 107.
        #[serde(deserialize_with = "or_default")]
        pub expire_at: i64,
        /// Information about the client for others in this channel: any JSON value.
        #[serde(deserialize_with = "raw_or_none")]
        #[schemars(with = "serde_json::Value")]
        pub info: Bytes,
        /// The same as binary data in standard base64 with padding; used instead of `info`.
        #[serde(deserialize_with = "or_default")]
        #[schemars(regex(pattern = json::BASE64))]
        pub b64info: String,
        /// Data for the client in the subscribe push: any JSON value.
        #[serde(deserialize_with = "raw_or_none")]
        #[schemars(with = "serde_json::Value")]
        pub data: Bytes,
        /// The same as binary data in standard base64 with padding; used instead of `data`.
        #[serde(deserialize_with = "or_default")]
        #[schemars(regex(pattern = json::BASE64))]
        pub b64data: String,
        /// In recoverable channels: send the publications after this position first.
        #[schemars(with = "Since")]
        pub recover_since: Option<Since>,
        /// Options that replace those of the namespace.
        #[schemars(with = "SubscribeOverride")]
        pub r#override: Option<SubscribeOverride>,
    }
}

/// Options of one subscription; an absent option is that of the namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SubscribeOverride {
    /// Add the client to the presence of the channel.
    #[schemars(with = "BoolValue")]
    pub presence: Option<BoolValue>,
    /// Publish join and leave of the client.
    #[schemars(with = "BoolValue")]
    pub join_leave: Option<BoolValue>,
    /// Enable recovery.
    #[schemars(with = "BoolValue")]
    pub force_recovery: Option<BoolValue>,
    /// Enable positioning: the subscription ends when a publication was lost.
    #[schemars(with = "BoolValue")]
    pub force_positioning: Option<BoolValue>,
    /// Send joins and leaves of others to the client.
    #[schemars(with = "BoolValue")]
    pub force_push_join_leave: Option<BoolValue>,
}

/// A bool that may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BoolValue {
    /// False when absent.
    #[serde(deserialize_with = "or_default")]
    pub value: bool,
}

impl Api {
    /// Subscribes a user's connections. Returns when those of this node are subscribed.
    ///
    /// # Errors
    /// 107 without a channel, with invalid base64 or an expiry in the past; 102 for an unknown namespace; 100 when broker
    /// or presence failed for a connection, or the other nodes could not be reached.
    pub async fn subscribe(&self, mut request: SubscribeRequest) -> Result<Empty, ApiError> {
        self.measure_async(Method::Subscribe, async |now| {
            if request.channel.is_empty() {
                return Err(NO_CHANNEL);
            }
            let target = request.take_target()?;
            let since = request.recover_since;
            let subscription = ServerSubscription {
                channel: request.channel.into(),
                info: payload(request.info, &request.b64info)?,
                data: payload(request.data, &request.b64data)?,
                expire_at: unix(request.expire_at),
                overrides: request.r#override.unwrap_or_default().into(),
                recover_since: since
                    .map(|Since { offset, epoch }| StreamPosition { offset, epoch }),
            };
            self.node.connections().subscribe(target, subscription, now).await?;
            Ok(Empty {})
        })
        .await
    }
}

impl From<SubscribeOverride> for Overrides {
    fn from(request: SubscribeOverride) -> Self {
        let value = |flag: Option<BoolValue>| flag.map(|flag| flag.value);
        Self {
            presence: value(request.presence),
            join_leave: value(request.join_leave),
            force_recovery: value(request.force_recovery),
            force_positioning: value(request.force_positioning),
            force_push_join_leave: value(request.force_push_join_leave),
        }
    }
}

/// An expiry in Unix seconds; `None` = never.
pub(super) fn unix(expire_at: i64) -> Option<u64> {
    u64::try_from(expire_at).ok().filter(|expiry| *expiry > 0)
}
