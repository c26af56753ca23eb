//! Claims of tokens (Centrifugo v6), as sessions use them.
//! In: the payload of a verified token → out: user, channels, payloads and expiry.
//! May use: serde_json, base64, bytes. Pure; never checks signatures or time.
//! Changed here: claim names and types; registered claims and the user live in `registered.rs`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Fault;
use super::registered::{Date, Registered, object};

/// Rights and data that a valid connection token grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionClaims {
    /// User id; "" = anonymous.
    pub user: String,
    /// Connection info (`info` as JSON text, or decoded `b64info`); empty = none.
    pub info: Bytes,
    /// Unix seconds when the connection expires, from `expire_at` or else `exp`; `None` = never. May be in the past.
    pub expire_at: Option<u64>,
    /// Server-side channels: those of `subs`, or of `channels` when there is no `subs`.
    pub channels: BTreeMap<String, ChannelGrant>,
    /// `meta` as JSON text, kept on the server; empty = none.
    pub meta: Bytes,
    /// Texts by which the server API selects connections.
    pub labels: BTreeMap<String, String>,
    /// `jti`, by which the server API revokes the token; "" = none.
    pub uid: String,
    /// `iat` in Unix seconds; 0 = none.
    pub issued_at: u64,
}

/// One server-side subscription of a connection token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelGrant {
    /// Channel info; empty = none.
    pub info: Bytes,
    /// `data` of the subscribe result; empty = none.
    pub data: Bytes,
    pub overrides: Overrides,
    /// A tag filter as JSON text, which the client's own filter cannot widen; empty = none. The node checks it.
    pub server_tags_filter: Bytes,
}

/// Channel options that a token sets against its namespace; `None` = as the namespace says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    pub presence: Option<bool>,
    pub join_leave: Option<bool>,
    pub force_recovery: Option<bool>,
    pub force_positioning: Option<bool>,
    pub force_push_join_leave: Option<bool>,
}

/// Rights and data that a valid subscription token grants. The caller still compares them with the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscriptionClaims {
    /// User id that may subscribe; "" = anonymous.
    pub user: String,
    /// Channel that may be subscribed to; never empty.
    pub channel: String,
    /// Client id that may subscribe; "" = any.
    pub client: String,
    /// Channel info; empty = none.
    pub info: Bytes,
    /// `data` of the subscribe result; empty = none.
    pub data: Bytes,
    /// Unix seconds when the subscription expires, from `expire_at` or else `exp`; `None` = never. May be in the past.
    pub expire_at: Option<u64>,
    pub overrides: Overrides,
    /// As in [`ChannelGrant`].
    pub server_tags_filter: Bytes,
    /// `jti`, by which the server API revokes the token; "" = none.
    pub uid: String,
    /// `iat` in Unix seconds; 0 = none.
    pub issued_at: u64,
}

impl SubscriptionClaims {
    /// Whether the token was made for this user, channel and client; otherwise disconnect 3500.
    pub fn is_for(&self, user: &str, channel: &str, client: &str) -> bool {
        self.user == user
            && self.channel == channel
            && (self.client.is_empty() || self.client == client)
    }
}

/// Reads the claims of a connection token. A `channel` in it is a subscription token in the wrong place.
pub(super) fn connection(
    json: &[u8],
    user: String,
    registered: &mut Registered,
) -> Result<ConnectionClaims, Fault> {
    let raw: RawConnection<'_> = object(json).ok_or(Fault::Claims)?;
    if raw.channel.is_some_and(|channel| !channel.is_empty()) {
        return Err(Fault::Claims);
    }
    Ok(ConnectionClaims {
        user,
        info: payload(raw.info, raw.b64info)?,
        expire_at: expire_at(raw.expire_at, registered.expiry()),
        channels: channels(raw.subs, raw.channels)?,
        meta: payload(raw.meta, None)?,
        labels: raw.labels.unwrap_or_default(),
        uid: registered.take_uid(),
        issued_at: registered.issued_at(),
    })
}

/// Reads the claims of a subscription token; `channel` is required.
pub(super) fn subscription(
    json: &[u8],
    user: String,
    registered: &mut Registered,
) -> Result<SubscriptionClaims, Fault> {
    let raw: RawSubscription<'_> = object(json).ok_or(Fault::Claims)?;
    let channel = raw.channel.filter(|channel| !channel.is_empty()).ok_or(Fault::Claims)?;
    Ok(SubscriptionClaims {
        user,
        channel,
        client: raw.client.unwrap_or_default(),
        info: payload(raw.info, raw.b64info)?,
        data: payload(raw.data, raw.b64data)?,
        expire_at: expire_at(raw.expire_at, registered.expiry()),
        overrides: raw.r#override.unwrap_or_default().into(),
        server_tags_filter: payload(raw.server_tags_filter, None)?,
        uid: registered.take_uid(),
        issued_at: registered.issued_at(),
    })
}

fn channels(
    subs: Option<BTreeMap<String, Option<RawGrant<'_>>>>,
    channels: Option<Vec<String>>,
) -> Result<BTreeMap<String, ChannelGrant>, Fault> {
    let subs = subs.unwrap_or_default();
    if subs.is_empty() {
        let channels = channels.unwrap_or_default().into_iter();
        return Ok(channels.map(|channel| (channel, ChannelGrant::default())).collect());
    }
    let grant = |raw: Option<RawGrant<'_>>| {
        raw.map_or_else(|| Ok(ChannelGrant::default()), RawGrant::grant)
    };
    subs.into_iter().map(|(channel, raw)| Ok((channel, grant(raw)?))).collect()
}

/// Copies a payload, so that a connection does not keep its whole token in memory. Base64 wins over JSON.
fn payload(json: Option<&RawValue>, base64: Option<String>) -> Result<Bytes, Fault> {
    if let Some(base64) = base64.filter(|base64| !base64.is_empty()) {
        return STANDARD.decode(base64).map(Bytes::from).map_err(|_| Fault::Claims);
    }
    Ok(json.map_or_else(Bytes::new, |json| Bytes::copy_from_slice(json.get().as_bytes())))
}

/// `expire_at` wins over `exp`; 0 or less is "never".
fn expire_at(expire_at: Option<Date>, exp: Option<Date>) -> Option<u64> {
    expire_at.or(exp).and_then(Date::unix)
}

#[derive(Deserialize)]
struct RawConnection<'a> {
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    b64info: Option<String>,
    channels: Option<Vec<String>>,
    #[serde(borrow)]
    subs: Option<BTreeMap<String, Option<RawGrant<'a>>>>,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
    labels: Option<BTreeMap<String, String>>,
    expire_at: Option<Date>,
    channel: Option<String>,
}

#[derive(Deserialize)]
struct RawSubscription<'a> {
    channel: Option<String>,
    client: Option<String>,
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    b64info: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    b64data: Option<String>,
    r#override: Option<RawOverrides>,
    #[serde(borrow)]
    server_tags_filter: Option<&'a RawValue>,
    expire_at: Option<Date>,
}

#[derive(Deserialize)]
struct RawGrant<'a> {
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    b64info: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    b64data: Option<String>,
    r#override: Option<RawOverrides>,
    #[serde(borrow)]
    server_tags_filter: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct RawOverrides {
    presence: Option<RawFlag>,
    join_leave: Option<RawFlag>,
    force_recovery: Option<RawFlag>,
    force_positioning: Option<RawFlag>,
    force_push_join_leave: Option<RawFlag>,
}

#[derive(Deserialize)]
struct RawFlag {
    #[serde(default)]
    value: bool,
}

impl RawGrant<'_> {
    fn grant(self) -> Result<ChannelGrant, Fault> {
        Ok(ChannelGrant {
            info: payload(self.info, self.b64info)?,
            data: payload(self.data, self.b64data)?,
            overrides: self.r#override.unwrap_or_default().into(),
            server_tags_filter: payload(self.server_tags_filter, None)?,
        })
    }
}

impl From<RawOverrides> for Overrides {
    fn from(raw: RawOverrides) -> Self {
        let value = |flag: Option<RawFlag>| flag.map(|flag| flag.value);
        Self {
            presence: value(raw.presence),
            join_leave: value(raw.join_leave),
            force_recovery: value(raw.force_recovery),
            force_positioning: value(raw.force_positioning),
            force_push_join_leave: value(raw.force_push_join_leave),
        }
    }
}

#[cfg(test)]
mod tests;
