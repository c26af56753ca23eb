//! The `connect` command (protocol §7): from credentials to a connected session with its server-side subscriptions.
//! In: a ConnectRequest → out: a ConnectResult, an error that makes the connection unusable, or a disconnect.
//! Uses: `credentials`, `lifetime`, `enter`, channel rules, the roster. Never: leaves anything behind when it refuses.
//! Change here: what a connect result says and which channels the server adds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fanwire_protocol::{
    ConnectRequest, ConnectResult, Disconnect, ErrorCode, Reply, SubscribeRequest, SubscribeResult,
};
use uuid::Builder;

use super::credentials::{self, Credentials, Grants};
use super::enter::{self, Entry, Tracking, Visibility};
use super::lifetime::Lifetime;
use super::{Answer, Refusal, Turn};
use crate::channel::{SubscribeDecision, Who};
use crate::session::{NO_EXPIRY, Terms};
use crate::token::{ChannelGrant, Overrides};

/// Everything that can be refused is refused before the session is connected; channels entered until then are left again.
pub(super) fn handle(turn: &mut Turn<'_>, request: ConnectRequest) -> Answer {
    let Credentials { user, info, expire_at, channels } = credentials::of(turn, &request.token)?;
    let lifetime = Lifetime::of(turn, expire_at)?;
    let grants_hash = credentials::hash(&channels);
    let channels = server_side_channels(turn, &user, channels, &request.subs)?;
    let overrides: Vec<_> = channels.values().map(|grant| grant.overrides).collect();
    let subs = enter_all(turn, channels, &request.subs)?;
    let user = turn.node.enter(&user).ok_or(Disconnect::CONNECTION_LIMIT)?;
    admit(turn, user, info, lifetime, grants_hash);
    turn.roster.schedule(turn.node, turn.key.index);
    appear(turn, subs.keys().zip(overrides))?;
    Ok(Reply { connect: Some(result(turn, lifetime, subs)), ..Reply::default() })
}

/// The channels of the token, which must be possible, and the requested ones (`connect.subs`) the user may subscribe to.
fn server_side_channels(
    turn: &Turn<'_>,
    user: &str,
    mut channels: Grants,
    requested: &BTreeMap<String, SubscribeRequest>,
) -> Result<Grants, Refusal> {
    let rules = turn.node.rules();
    for channel in channels.keys() {
        rules.resolve(channel)?;
    }
    let who = Who { user, insecure: turn.insecure() };
    for channel in requested.keys() {
        let namespace = match rules.resolve(channel) {
            Ok(namespace) => namespace,
            Err(ErrorCode::UNKNOWN_CHANNEL) => return Err(Disconnect::BAD_REQUEST.into()),
            Err(_) => continue,
        };
        if rules.may_subscribe(who, channel, namespace, false) == SubscribeDecision::Allowed {
            channels.entry(channel.clone()).or_default();
        }
    }
    if channels.len() > turn.node.options().client.channel_limit {
        return Err(Disconnect::CHANNEL_LIMIT.into());
    }
    Ok(channels)
}

fn admit(turn: &mut Turn<'_>, user: Arc<str>, info: Bytes, lifetime: Lifetime, grants_hash: u64) {
    turn.roster.admit(turn.key.index, user);
    let first_ping = turn.node.clock().moment(turn.now).after(first_ping_after(turn));
    let session = turn.session_mut();
    session.id = Builder::from_random_bytes(rand::random()).into_uuid();
    session.info = info;
    session.expire_at = lifetime.expire_at.unwrap_or(NO_EXPIRY);
    session.grants_hash = grants_hash;
    session.beat_at = first_ping;
}

/// A random moment between half an interval and a whole one, so that connections of one moment do not ping at one moment.
fn first_ping_after(turn: &Turn<'_>) -> Duration {
    let interval = turn.node.options().client.ping_interval;
    interval.mul_f64(rand::random_range(0.5..1.0))
}

/// Enters every channel, or none: what fails for one fails the connect.
fn enter_all(
    turn: &mut Turn<'_>,
    channels: Grants,
    requested: &BTreeMap<String, SubscribeRequest>,
) -> Result<BTreeMap<String, SubscribeResult>, Refusal> {
    let mut subs = BTreeMap::new();
    for (channel, grant) in channels {
        match enter_one(turn, &channel, grant, requested.get(&channel)) {
            Ok(result) => subs.insert(channel, result),
            Err(error) => {
                for place in (0..subs.len()).rev() {
                    turn.roster.leave(turn.node, turn.key.index, place);
                }
                return Err(error.into());
            }
        };
    }
    Ok(subs)
}

fn enter_one(
    turn: &mut Turn<'_>,
    channel: &str,
    grant: ChannelGrant,
    requested: Option<&SubscribeRequest>,
) -> Result<SubscribeResult, ErrorCode> {
    let namespace = turn.node.rules().resolve(channel)?;
    let entry = Entry {
        channel,
        server_side: true,
        terms: Terms::boxed(grant.info, None),
        tracking: Tracking::of(turn, namespace, grant.overrides, None),
        claim: requested.and_then(enter::claim),
        only_recovered: false,
    };
    let entered = enter::enter(turn, namespace, entry)?;
    Ok(SubscribeResult { data: grant.data, ..entered })
}

/// Makes the connection, which has a name by now, known in the channels it entered.
fn appear<'a>(
    turn: &mut Turn<'_>,
    entered: impl Iterator<Item = (&'a String, Overrides)>,
) -> Result<(), Disconnect> {
    for (channel, overrides) in entered {
        let namespace = turn.node.rules().resolve(channel);
        let appeared = namespace.and_then(|namespace| {
            let visibility = Visibility::of(turn, namespace, overrides, None);
            enter::appear(turn, channel, visibility)
        });
        appeared.map_err(|_| Disconnect::SERVER_ERROR)?; // too late for an error: it is connected
    }
    Ok(())
}

fn result(
    turn: &Turn<'_>,
    lifetime: Lifetime,
    subs: BTreeMap<String, SubscribeResult>,
) -> ConnectResult {
    let (options, session) = (turn.node.options(), turn.session());
    let time = turn.node.clock().unix_ms(turn.now).try_into().unwrap_or(i64::MAX);
    ConnectResult {
        client: session.client(),
        version: options.version.clone(),
        expires: lifetime.expires(),
        ttl: lifetime.ttl,
        subs,
        ping: if session.frame_ping { 0 } else { whole_seconds(options.client.ping_interval) },
        pong: !session.frame_ping,
        time: if options.client.connect_include_server_time { time } else { 0 },
        ..ConnectResult::default()
    }
}

/// Rounded up: a client that hears 0 expects no pings at all.
fn whole_seconds(duration: Duration) -> u32 {
    duration.as_millis().div_ceil(1000).try_into().unwrap_or(u32::MAX)
}
