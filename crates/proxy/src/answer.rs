//! Answers of backends as decisions: which part of a response counts, and what its fields grant.
//! In: responses of every kind of event → out: grants for the node's hooks, or rejections.
//! Uses the messages of `protocol::proxy`. Never: calls.
//! Changed here: the meaning of a field. The list of fields is `proxy.proto` in `protocol`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fanwire_auth::{ChannelGrant, Overrides};
use fanwire_broker::map::KeyMode;
use fanwire_node::check_filter;
use fanwire_node::hooks::{
    ConnectGrant, MapGrant, PublishGrant, RefreshGrant, Rejection, SubscribeGrant,
};
use fanwire_node::shared_poll::{PollAnswer, PollItem};
use fanwire_protocol::proxy as pb;
use fanwire_protocol::{Disconnect, FilterNode, ProtocolError};

use crate::event::ProxyResponse;

/// The result of a response. Of several parts the disconnect counts first, then the error.
///
/// # Errors
/// The rejection in the response.
pub(crate) fn result<R: ProxyResponse>(response: R) -> Result<Option<R::Result>, Rejection> {
    match response.into_parts() {
        (_, _, Some(pb::Disconnect { code, reason })) => Err(disconnect(code, reason)),
        (_, Some(pb::Error { code, message, temporary }), None) => {
            Err(Rejection::Error(ProtocolError { code, message, temporary }))
        }
        (result, None, None) => Ok(result),
    }
}

/// A code that does not fit is no close code, which the node reports.
pub(crate) fn disconnect(code: u32, reason: String) -> Rejection {
    let code = u16::try_from(code).unwrap_or_default();
    Rejection::Disconnect(Disconnect { code, reason: reason.into() })
}

pub(crate) fn connect(result: pb::ConnectResult) -> Result<ConnectGrant, Rejection> {
    let mut channels = BTreeMap::new();
    for channel in result.channels {
        channels.insert(channel, ChannelGrant::default());
    }
    for (channel, options) in result.subs {
        let grant = ChannelGrant {
            info: payload(options.info, &options.b64info)?,
            data: payload(options.data, &options.b64data)?,
            overrides: overrides(options.r#override),
            server_tags_filter: filter(options.server_tags_filter)?,
        };
        channels.insert(channel, grant);
    }
    Ok(ConnectGrant {
        user: result.user,
        info: payload(result.info, &result.b64info)?,
        expire_at: expire_at(result.expire_at),
        data: payload(result.data, &result.b64data)?,
        channels,
        meta: not_null(result.meta),
        labels: result.labels,
        ignores_request: true,
    })
}

/// `None` when the connection or the subscription expired: a result without a new end renews nothing.
pub(crate) fn refresh(result: pb::RefreshResult) -> Result<Option<RefreshGrant>, Rejection> {
    let info = payload(result.info, &result.b64info)?;
    let meta = not_null(result.meta);
    let renewed = renewed_until(result.expired, result.expire_at);
    Ok(renewed.map(|renewal| RefreshGrant { info, meta, ..renewal }))
}

/// `None` when the subscription expired. A result without a filter does not change it.
pub(crate) fn sub_refresh(result: pb::SubRefreshResult) -> Result<Option<RefreshGrant>, Rejection> {
    let info = payload(result.info, &result.b64info)?;
    let server_tags_filter = filter(result.server_tags_filter)?;
    let renewed = renewed_until(result.expired, result.expire_at);
    Ok(renewed.map(|renewal| RefreshGrant { info, server_tags_filter, ..renewal }))
}

fn renewed_until(is_expired: bool, unix: i64) -> Option<RefreshGrant> {
    let expire_at = expire_at(unix).filter(|_| !is_expired)?;
    Some(RefreshGrant { expire_at: Some(expire_at), ..RefreshGrant::default() })
}

pub(crate) fn subscribe(result: pb::SubscribeResult) -> Result<SubscribeGrant, Rejection> {
    Ok(SubscribeGrant {
        info: payload(result.info, &result.b64info)?,
        data: payload(result.data, &result.b64data)?,
        overrides: overrides(result.r#override),
        expire_at: expire_at(result.expire_at),
        ignores_request: true,
        server_tags_filter: filter(result.server_tags_filter)?,
    })
}

pub(crate) fn publish(result: pb::PublishResult) -> Result<PublishGrant, Rejection> {
    Ok(PublishGrant {
        data: replacement(result.data, &result.b64data)?,
        tags: result.tags,
        idempotency_key: result.idempotency_key,
        skip_history: result.skip_history,
        delta: result.delta,
        version: result.version,
        version_epoch: result.version_epoch,
        is_processed: false,
    })
}

pub(crate) fn map_publish(result: pb::MapPublishResult) -> Result<MapGrant, Rejection> {
    Ok(MapGrant {
        key: Some(result.key).filter(|key| !key.is_empty()),
        data: replacement(result.data, &result.b64data)?,
        tags: result.tags,
        idempotency_key: result.idempotency_key,
        version: result.version,
        version_epoch: result.version_epoch,
        key_mode: KeyMode::parse(&result.key_mode)
            .ok_or(Rejection::Unavailable(Cow::Borrowed(NO_KEY_MODE)))?,
        expected: None,
        delta: result.delta,
    })
}

pub(crate) fn map_remove(result: pb::MapRemoveResult) -> MapGrant {
    MapGrant {
        key: Some(result.key).filter(|key| !key.is_empty()),
        tags: result.tags,
        idempotency_key: result.idempotency_key,
        ..MapGrant::default()
    }
}

pub(crate) fn rpc(result: pb::RpcResult) -> Result<Bytes, Rejection> {
    Ok(if result.b64data.is_empty() { result.data } else { decode(&result.b64data)? })
}

pub(crate) fn shared_poll_refresh(result: pb::SharedPollRefreshResult) -> PollAnswer {
    let item = |item: pb::SharedPollRefreshResultItem| PollItem {
        key: item.key,
        data: not_null(item.data),
        version: item.version,
        is_removed: item.removed,
    };
    PollAnswer { items: result.items.into_iter().map(item).collect(), epoch: result.epoch }
}

fn overrides(options: Option<pb::SubscribeOptionOverride>) -> Overrides {
    let options = options.unwrap_or_default();
    let value = |value: Option<pb::BoolValue>| value.map(|value| value.value);
    Overrides {
        presence: value(options.presence),
        join_leave: value(options.join_leave),
        force_recovery: value(options.force_recovery),
        force_positioning: value(options.force_positioning),
        force_push_join_leave: value(options.force_push_join_leave),
    }
}

/// A tag filter as JSON, as in a token; empty = none.
fn filter(filter: Option<FilterNode>) -> Result<Bytes, Rejection> {
    let Some(filter) = filter else { return Ok(Bytes::new()) };
    check_filter(&filter).map_err(|_| Rejection::Unavailable(Cow::Borrowed(NO_FILTER)))?;
    Ok(pb::write(&filter).map(Bytes::from).unwrap_or_default())
}

/// The data of the backend in place of those of the client; `None` when it sent none. JSON wins over base64 here.
fn replacement(json: Bytes, base64: &str) -> Result<Option<Bytes>, Rejection> {
    let by_backend = if json.is_empty() { decode(base64)? } else { json };
    Ok(Some(by_backend).filter(|data| !data.is_empty()))
}

/// Base64 wins over JSON.
fn payload(json: Bytes, base64: &str) -> Result<Bytes, Rejection> {
    if base64.is_empty() { Ok(not_null(json)) } else { decode(base64) }
}

/// A backend that writes all its keys has `null` for what it does not set.
fn not_null(json: Bytes) -> Bytes {
    if json == "null" { Bytes::new() } else { json }
}

fn decode(base64: &str) -> Result<Bytes, Rejection> {
    let decoded = STANDARD.decode(base64).map(Bytes::from);
    decoded.map_err(|_| Rejection::Unavailable(Cow::Borrowed(NOT_BASE64)))
}

/// 0 or less is "never".
fn expire_at(unix: i64) -> Option<u64> {
    u64::try_from(unix).ok().filter(|unix| *unix > 0)
}

const NO_KEY_MODE: &str =
    "the backend's answer has a key_mode that is neither if_new nor if_exists";
const NO_FILTER: &str = "the backend's answer has a server_tags_filter that is no tag filter";
const NOT_BASE64: &str = "the backend's answer has b64data or b64info that is not base64";

#[cfg(test)]
mod tests;
