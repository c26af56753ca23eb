//! The `connect` command (protocol §7): from credentials to a connected session with its server-side subscriptions.
//! In: a ConnectRequest → out: a ConnectResult, an error that makes the connection unusable, or a disconnect.
//! Uses: `credentials`, `lifetime`, `subscribe`, channel rules, the session table. Never: leaves state behind when it refuses.
//! Changed here: the connect result and the channels that the server adds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fanwire_auth::ChannelGrant;
use fanwire_broker::Position;
use fanwire_policy::channel::{NamesOthers, SubscribeDecision, Who};
use fanwire_policy::filter::SubscriptionFilter;
use fanwire_policy::hooks::{ClientReport, CommandDecision, ConnectEvent, ConnectGrant};
use fanwire_policy::options::ProxyRoute;
use fanwire_policy::recovery::ClaimedPosition;
use fanwire_protocol::{
    ConnectRequest, ConnectResult, Disconnect, ErrorCode, SubscribeRequest, SubscribeResult,
};
use fanwire_telemetry::excerpt;

use super::credentials::{self, Credentials, Grants};
use super::hook::{HookDecision, RoutedHook};
use super::subscribe::{self, Finished, Progress, SubscribeParameters};
use super::{CommandContext, CommandStep, StepResult, filters};
use crate::encode_job::{Encoded, ReplySource};
use crate::flight_log;
use crate::last_event_id::{self, Unresumed};
use crate::pending::{
    ConnectAttributes, PendingChannel, PendingSubscribe, SubscribeOrigin, Tracking, Visibility,
};
use crate::refusal::CommandError;
use crate::session::{CommandSource, Lifetime, NO_EXPIRY, SubscriptionGrant};

/// Begins a connect. A refusal is logged with the user that the hook or the token named.
pub(super) fn handle(context: &mut CommandContext<'_>, request: ConnectRequest) -> StepResult {
    let step = checked(context, &request);
    if step.is_err() && context.effects.log.claimed_user.is_empty() {
        let claimed = context.settings.connection_verifier().claimed_user(&request.token);
        context.effects.log.claimed_user = claimed.map(|user| excerpt(&user)).unwrap_or_default();
    }
    step
}

/// All checks run before the session is connected.
fn checked(context: &mut CommandContext<'_>, request: &ConnectRequest) -> StepResult {
    let credentials = match authenticate(context, request)? {
        HookDecision::Pending(answer) => return Ok(CommandStep::Ask(answer)),
        HookDecision::Made(Some(grant)) => {
            context.effects.log.claimed_user = excerpt(&grant.user);
            grant.into()
        }
        HookDecision::Made(None) => credentials::of(context, &request.token)?,
    };
    let Credentials { user, info, expire_at, data, channels, meta, ignores_request, token, labels } =
        credentials;
    credentials::check_revocations(context, &user, token.as_ref())?;
    credentials::check_labels(&labels)?;
    let lifetime = Lifetime::of(context, expire_at)?;
    let grant = credentials::grant(&channels, token);
    let requested = request.subs.keys().filter(|_| !ignores_request);
    let channels = server_side_channels(context, &user, channels, requested)?;
    let filters = filters::of_grants(&channels)?;
    introduce(context, &user, info);
    let session = context.session_mut();
    session.set_meta(meta);
    session.grant = grant;
    let index = context.key.index;
    context.session_table.set_app(index, &request.name, &request.version, labels);
    let resume = resume(context, &channels);
    flight_log::begin(context.node, context.session_table, context.key, context.now);
    context.effects.log.begins = true;
    let mut pending_channels = Vec::with_capacity(channels.len());
    for (number, ((channel, grant), of_server)) in channels.into_iter().zip(filters).enumerate() {
        let requested = request.subs.get(&channel);
        let since = resume.and_then(Result::ok);
        let filter = SubscriptionFilter { of_server, of_client: None };
        let subscription =
            ServerSideSubscription { channel: &channel, grant, filter, requested, since };
        pending_channels.push(begin(context, subscription, number));
    }
    let terms = ConnectAttributes { lifetime, data, resume, positions: Vec::new() };
    let then = SubscribeOrigin::Connect(terms);
    Ok(CommandStep::Enter(Box::new(PendingSubscribe::new(pending_channels, then))))
}

/// Asks the hook, if there is one and no key verifies the token.
fn authenticate(
    context: &mut CommandContext<'_>,
    request: &ConnectRequest,
) -> Result<HookDecision<ConnectGrant>, CommandError> {
    let verifies = !request.token.is_empty() && context.settings.connection_verifier().is_enabled();
    keep_emulated_headers(context, &request.headers);
    let Some(hook) = context.node.hooks().connect.as_ref().filter(|_| !verifies) else {
        return Ok(HookDecision::Made(None));
    };
    identify(context);
    let event = |context: &CommandContext<'_>| {
        let session = context.session();
        let mut event = ConnectEvent::new(session.client(), session.context());
        event.channels = request.subs.keys().cloned().collect();
        event.token = request.token.clone();
        event.data = request.data.clone();
        event.name = request.name.clone();
        event.version = request.version.clone();
        event
    };
    let hook = RoutedHook { hook, route: ProxyRoute::default() };
    context.ask(Some(hook), event, CommandDecision::Connect, CommandDecision::into_connect)
}

/// Keeps the headers of the command that some proxy lists.
fn keep_emulated_headers(context: &mut CommandContext<'_>, headers: &BTreeMap<String, String>) {
    let names = &context.node.hooks().emulated_headers;
    let listed: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .filter(|(name, _)| names.contains(name))
        .collect();
    if let Some(facts) = context.session_mut().context.as_mut().filter(|_| !listed.is_empty()) {
        Arc::make_mut(facts).emulated_headers = listed;
    }
}

/// All answers arrived: the session is connected and in all its channels, or in none.
pub(super) fn finish(
    context: &mut CommandContext<'_>,
    channels: Vec<PendingChannel>,
    encoded: Option<Result<Encoded, ErrorCode>>,
    terms: &mut ConnectAttributes,
) -> Result<Finished, CommandError> {
    let user = Arc::clone(&context.session().user);
    let limit = context.settings.options.client.user_connection_limit;
    let Some(user) = context.node.registry().enter(&user, limit) else {
        context.abandon(&channels);
        let cause = "the user has as many connections as client.user_connection_limit allows";
        return Err(CommandError::disconnect(Disconnect::CONNECTION_LIMIT, cause));
    };
    let names: Vec<_> = channels
        .iter()
        .map(|pending_channel| pending_channel.channel.as_ref().to_owned())
        .collect();
    let command_source = context.session().command_source;
    let resumes = terms.resume;
    let apart = matches!(terms.resume, Some(Ok(_)));
    let welcome = |context: &CommandContext<'_>, terms: &ConnectAttributes, results: Vec<_>| {
        let result = Box::new(result(context, terms, names.into_iter().zip(results).collect()));
        let positions = match command_source {
            CommandSource::None => last_event_id::positions(&result, apart),
            CommandSource::Connection | CommandSource::Requests => Vec::new(),
        };
        (ReplySource::Connect { result, command_source, apart }, positions)
    };
    let finished = match subscribe::all(context, channels, encoded)
        .inspect_err(|_| context.node.registry().exit(&user))?
    {
        Progress::Entered(results) => {
            let (found, positions) = welcome(context, terms, results);
            let (reply, missed) = found.replies();
            context.effects.reply.positions = positions;
            context.effects.reply.pushes.extend(missed);
            Finished::Reply(reply)
        }
        Progress::Large(results, channels) => {
            context.node.registry().exit(&user); // it comes again with the reply
            let (found, positions) = welcome(context, terms, results);
            terms.positions = positions;
            return Ok(Finished::Large(found, channels));
        }
        Progress::Encoded(messages) => {
            context.effects.reply.positions = std::mem::take(&mut terms.positions);
            Finished::Encoded(messages)
        }
    };
    context.effects.reply.unresumed = match resumes {
        Some(Err(unresumed)) => Some(unresumed),
        Some(Ok(_)) => context.effects.connection.unrecovered.map(Unresumed::Unrecovered),
        None => None,
    };
    admit(context, user, terms);
    context.schedule();
    supersede_others(context);
    Ok(finished)
}

/// The channels of the token and the personal channel, which must be valid, and those of `connect.subs` that the user
/// may subscribe to. Where a hook decides about a subscribe, it decides about a command only.
fn server_side_channels(
    context: &CommandContext<'_>,
    user: &str,
    mut channels: Grants,
    requested: impl Iterator<Item = impl AsRef<str>>,
) -> Result<Grants, CommandError> {
    let rules = &context.settings.channels;
    channels.remove(""); // of a token: Centrifugo passes it over
    match rules.personal_channel(user) {
        Ok(None) => {}
        Ok(Some(channel)) => {
            channels.entry(channel).or_default();
        }
        Err(NamesOthers) => context.node.log().no_personal_channel(context.now),
    }
    for channel in channels.keys() {
        if !rules.resolve_trusted(channel)?.is_of_streams() {
            return Err(ErrorCode::NOT_AVAILABLE.into()); // as for a subscribe
        }
    }
    let who = Who { user, insecure: context.insecure() };
    for channel in requested {
        let channel = channel.as_ref();
        if channels.contains_key(channel) {
            continue;
        }
        let namespace = match rules.resolve(channel) {
            Ok(namespace) if namespace.is_of_streams() => namespace,
            Err(ErrorCode::UNKNOWN_CHANNEL) => {
                let cause = "a channel of connect.subs has no namespace in channel.namespaces";
                return Err(CommandError::disconnect(Disconnect::BAD_REQUEST, cause));
            }
            Ok(_) | Err(_) => continue,
        };
        let decider = context.node.hooks().decider(namespace);
        if rules.may_subscribe(who, channel, namespace, decider) == SubscribeDecision::Allowed {
            channels.entry(channel.to_owned()).or_default();
        }
    }
    if channels.len() > context.settings.options.client.channel_limit {
        return Err(Disconnect::CHANNEL_LIMIT.into());
    }
    Ok(channels)
}

/// Where the client continues: after its last event, in the one channel of these that can be recovered.
fn resume(context: &CommandContext<'_>, channels: &Grants) -> Option<Result<Position, Unresumed>> {
    let last_event_id = context.session().request.as_ref()?.last_event_id?;
    let rules = &context.settings.channels;
    let is_recoverable = |(channel, grant): &(&String, &ChannelGrant)| {
        let namespace = rules.resolve_trusted(channel).expect("only possible channels are left");
        Tracking::of(context, namespace, grant.overrides, None) == Tracking::Recoverable
    };
    Some(last_event_id.resume(channels.iter().filter(is_recoverable).count()))
}

/// Closes the older connections of the user, where only one is allowed.
fn supersede_others(context: &CommandContext<'_>) {
    let personal = &context.settings.options.client.subscribe_to_user_personal_channel;
    let session = context.session();
    if personal.enabled && personal.single_connection && !session.user.is_empty() {
        context.node.connections().supersede(&session.user, session.client_id());
    }
}

/// Sets id, user and info of the session, which presence needs.
fn introduce(context: &mut CommandContext<'_>, user: &str, info: Bytes) {
    identify(context);
    let session = context.session_mut();
    session.info = info;
    session.user = user.into();
}

/// Sets the id of the session; a hook may have received it already.
fn identify(context: &mut CommandContext<'_>) {
    let chance = context.node.chance();
    let session = context.session_mut();
    if session.id.is_nil() {
        session.id = chance.id();
    }
}

fn admit(context: &mut CommandContext<'_>, user: Arc<str>, terms: &ConnectAttributes) {
    if let Some(report) = context.node.hooks().report.as_ref()
        && context.session().channel_count() == 0
    {
        report(ClientReport::Connected { client: context.session().client_info(None) });
    }
    context.session_table.admit(context.key.index, user);
    let first_ping = context.node.clock().moment(context.now).after(first_ping_after(context));
    let unix_ms = context.node.clock().unix_ms(context.now);
    let session = context.session_mut();
    session.set_connected_at(unix_ms);
    session.expire_at = terms.lifetime.expire_at.unwrap_or(NO_EXPIRY);
    session.beat_at = first_ping;
    flight_log::connected(context.node, context.session_table, context.key.index, context.now);
}

/// A random moment in the second half of an interval, so that simultaneous connects do not ping at the same time.
fn first_ping_after(context: &CommandContext<'_>) -> Duration {
    context.node.chance().second_half_of(context.settings.options.client.ping_interval)
}

/// A subscription that a connect makes.
struct ServerSideSubscription<'a> {
    channel: &'a str,
    grant: ChannelGrant,
    filter: SubscriptionFilter,
    /// The request of the client in its connect, if it has one for this channel.
    requested: Option<&'a SubscribeRequest>,
    /// The position that the id of the last event has.
    since: Option<Position>,
}

fn begin(
    context: &mut CommandContext<'_>,
    subscription: ServerSideSubscription<'_>,
    number: usize,
) -> PendingChannel {
    let ServerSideSubscription { channel, grant, filter, requested, since } = subscription;
    let rules = &context.settings.channels;
    let namespace = rules.resolve_trusted(channel).expect("only possible channels are left");
    let tracking = Tracking::of(context, namespace, grant.overrides, None);
    // The request is that of the first connection, which `EventSource` repeats: its position is older.
    let since = since
        .filter(|_| tracking == Tracking::Recoverable)
        .map(|since| (since.offset, since.epoch.to_string()));
    let resumed = since.as_ref().map(|(offset, epoch)| ClaimedPosition { offset: *offset, epoch });
    let terms = SubscriptionGrant::boxed(grant.info, None);
    let parameters = SubscribeParameters {
        channel,
        server_side: true,
        terms: SubscriptionGrant::filtering(terms, filter.shared()),
        tracking,
        delta: None, // not applied to what the server subscribes (server API §3 subscribe)
        visibility: Visibility::of(context, namespace, grant.overrides, None),
        claimed: resumed.or(requested.map(subscribe::claimed)),
        recovers: resumed.is_some() || requested.is_some_and(|request| request.recover),
        only_recovered: false,
        mode: namespace.force_recovery_mode,
        data: grant.data,
        view: None,
        requested_data: requested.map(|request| request.data.clone()).unwrap_or_default(),
    };
    subscribe::begin(context, namespace, parameters, number)
}

fn result(
    context: &CommandContext<'_>,
    terms: &ConnectAttributes,
    subs: BTreeMap<String, SubscribeResult>,
) -> ConnectResult {
    let lifetime = terms.lifetime.refreshed_by_client(context);
    let options = &context.settings.options;
    let session = context.session();
    let time = context.node.clock().unix_ms(context.now).try_into().unwrap_or(i64::MAX);
    let session_id = session.session_id();
    let node = if session_id.is_empty() { "" } else { context.node.uid() };
    let has_pings = !session.frame_ping || context.is_unidirectional();
    ConnectResult {
        client: session.client(),
        node: node.to_owned(),
        session: session_id,
        version: options.version.clone(),
        expires: lifetime.expires(),
        ttl: lifetime.ttl(context),
        subs,
        data: terms.data.clone(),
        ping: if has_pings { whole_seconds(options.client.ping_interval) } else { 0 },
        pong: has_pings && !context.is_unidirectional(),
        time: if options.client.connect_include_server_time { time } else { 0 },
        ..ConnectResult::default()
    }
}

/// Rounded up: a client that receives 0 expects no pings at all.
fn whole_seconds(duration: Duration) -> u32 {
    duration.as_millis().div_ceil(1000).try_into().unwrap_or(u32::MAX)
}
