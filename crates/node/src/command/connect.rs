//! The `connect` command (protocol §7): from credentials to a connected session with its server-side subscriptions.
//! In: a ConnectRequest → out: a ConnectResult, an error that makes the connection unusable, or a disconnect.
//! Uses: `credentials`, `lifetime`, `subscribe`, channel rules, the session_table. Never: leaves anything behind when it refuses.
//! Change here: what a connect result says and which channels the server adds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fanwire_auth::ChannelGrant;
use fanwire_protocol::{
    ConnectRequest, ConnectResult, Disconnect, ErrorCode, Reply, SubscribeRequest, SubscribeResult,
};
use uuid::Builder;

use super::credentials::{self, Credentials, Grants};
use super::subscribe::{self, Finished, Progress, SubscribeParameters};
use super::{Begun, Refusal, Step, Turn};
use crate::channel::{NamesOthers, SubscribeDecision, Who};
use crate::encode_job::{Encoded, Found};
use crate::pending::{PendingChannel, PendingSubscribe, SubscribeOrigin, Tracking, Visibility};
use crate::session::Lifetime;
use crate::session::{NO_EXPIRY, Terms};

/// Everything that can be refused is refused before the session is connected.
pub(super) fn handle(turn: &mut Turn<'_>, request: ConnectRequest) -> Begun {
    let Credentials { user, info, expire_at, channels } = credentials::of(turn, &request.token)?;
    let lifetime = Lifetime::of(turn, expire_at)?;
    let grants_hash = credentials::hash(&channels);
    let channels = server_side_channels(turn, &user, channels, &request.subs)?;
    introduce(turn, &user, info);
    let mut entries = Vec::with_capacity(channels.len());
    for (number, (channel, grant)) in channels.into_iter().enumerate() {
        let requested = request.subs.get(&channel);
        entries.push(begin(turn, &channel, grant, requested, number));
    }
    let then = SubscribeOrigin::Connect { lifetime, grants_hash };
    Ok(Step::Enter(Box::new(PendingSubscribe::new(entries, then))))
}

/// Every answer is there: the session is connected and in all its channels, or in none.
pub(super) fn finish(
    turn: &mut Turn<'_>,
    entries: Vec<PendingChannel>,
    encoded: Option<Result<Encoded, ErrorCode>>,
    (lifetime, grants_hash): (Lifetime, u64),
) -> Result<Finished, Refusal> {
    let user = Arc::clone(&turn.session().user);
    let Some(user) = turn.node.enter(&user) else {
        turn.session_table.abandon(turn.node, turn.key.index, entries);
        return Err(Disconnect::CONNECTION_LIMIT.into());
    };
    let names: Vec<_> = entries.iter().map(|entry| entry.channel.as_ref().to_owned()).collect();
    let welcome = |turn: &Turn<'_>, results: Vec<_>| {
        result(turn, lifetime, names.into_iter().zip(results).collect())
    };
    let finished =
        match subscribe::all(turn, entries, encoded).inspect_err(|_| turn.node.exit(&user))? {
            Progress::Entered(results) => {
                let connect = Some(welcome(turn, results));
                Finished::Reply(Reply { connect, ..Reply::default() })
            }
            Progress::Large(results, entries) => {
                turn.node.exit(&user); // it comes again with the reply
                let found = Found::Welcome(Box::new(welcome(turn, results)));
                return Ok(Finished::Large(found, entries));
            }
            Progress::Told(messages) => Finished::Told(messages),
        };
    admit(turn, user, lifetime, grants_hash);
    turn.session_table.schedule(turn.node, turn.key.index);
    supersede_others(turn);
    Ok(finished)
}

/// The channels of the token and the user's personal one, which must be possible, and the requested ones (`connect.subs`)
/// the user may subscribe to.
fn server_side_channels(
    turn: &Turn<'_>,
    user: &str,
    mut channels: Grants,
    requested: &BTreeMap<String, SubscribeRequest>,
) -> Result<Grants, Refusal> {
    let rules = turn.node.rules();
    channels.remove(""); // of a token: Centrifugo passes it over
    match rules.personal_channel(user) {
        Ok(None) => {}
        Ok(Some(channel)) => {
            channels.entry(channel).or_default();
        }
        Err(NamesOthers) => turn.node.log_no_personal_channel(turn.now),
    }
    for channel in channels.keys() {
        if !rules.resolve_for(user, channel)?.is_of_streams() {
            return Err(ErrorCode::NOT_AVAILABLE.into()); // as for a subscribe
        }
    }
    let who = Who { user, insecure: turn.insecure() };
    for channel in requested.keys() {
        if channels.contains_key(channel) {
            continue;
        }
        let namespace = match rules.resolve(channel) {
            Ok(namespace) if namespace.is_of_streams() => namespace,
            Err(ErrorCode::UNKNOWN_CHANNEL) => return Err(Disconnect::BAD_REQUEST.into()),
            Ok(_) | Err(_) => continue,
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

/// Closes the older connections of the user, where one is to be the only one.
fn supersede_others(turn: &Turn<'_>) {
    let personal = &turn.node.options().client.subscribe_to_user_personal_channel;
    let session = turn.session();
    if personal.enabled && personal.single_connection && !session.user.is_empty() {
        turn.node.supersede(&session.user, session.client_id());
    }
}

/// Says who the session is, so that it can be present where it enters.
fn introduce(turn: &mut Turn<'_>, user: &str, info: Bytes) {
    let session = turn.session_mut();
    session.id = Builder::from_random_bytes(rand::random()).into_uuid();
    session.info = info;
    session.user = user.into();
}

fn admit(turn: &mut Turn<'_>, user: Arc<str>, lifetime: Lifetime, grants_hash: u64) {
    turn.session_table.admit(turn.key.index, user);
    let first_ping = turn.node.clock().moment(turn.now).after(first_ping_after(turn));
    let session = turn.session_mut();
    session.expire_at = lifetime.expire_at.unwrap_or(NO_EXPIRY);
    session.grants_hash = grants_hash;
    session.beat_at = first_ping;
}

/// A random moment between half an interval and a whole one, so that connections of one moment do not ping at one moment.
fn first_ping_after(turn: &Turn<'_>) -> Duration {
    let interval = turn.node.options().client.ping_interval;
    interval.mul_f64(rand::random_range(0.5..1.0))
}

fn begin(
    turn: &mut Turn<'_>,
    channel: &str,
    grant: ChannelGrant,
    requested: Option<&SubscribeRequest>,
    number: usize,
) -> PendingChannel {
    let namespace = turn.resolve(channel).expect("only possible channels are left");
    let wish = SubscribeParameters {
        channel,
        server_side: true,
        terms: Terms::boxed(grant.info, None),
        tracking: Tracking::of(turn, namespace, grant.overrides, None),
        delta: None, // not applied to what the server subscribes (server API §3 subscribe)
        visibility: Visibility::of(turn, namespace, grant.overrides, None),
        claim: requested.map(subscribe::claim),
        recovers: requested.is_some_and(|request| request.recover),
        only_recovered: false,
        mode: namespace.force_recovery_mode,
        data: grant.data,
    };
    subscribe::begin(turn, namespace, wish, number)
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
        ttl: lifetime.ttl(turn),
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
