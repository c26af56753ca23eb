//! Last step of a subscribe: makes the subscriptions, all of them or none, and returns their missed publications.
//! In: pending channels with all answers → out: subscriptions and their results, or none and the refusal.
//! Uses: the session table, patches for missed publications. Never: permissions.
//! Changed here: the order in which a subscription becomes visible. `recover.rs` evaluates the answers.

use std::sync::Arc;

use bytes::Bytes;
use fanwire_broker::Position;
use fanwire_policy::hooks::ClientReport;
use fanwire_policy::recovery::Unrecovered;
use fanwire_protocol::{Disconnect, ErrorCode, Reply, SubscribeResult};

use super::recover::decide;
use crate::command::CommandContext;
use crate::deadlines;
use crate::delta;
use crate::encode_job::{self, Encoded, ReplySource};
use crate::flight_log::{self, RecoveryEvent};
use crate::index::{SubscriptionIndex, SubscriptionKey};
use crate::map_presence::MapPresence;
use crate::pending::{BufferedMessages, PendingChannel, SubscriptionStart};
use crate::refusal::CommandError;
use crate::session_effects;
use crate::session_table::NewSubscription;
use crate::subscribers::{CatchUp, DeltaState};

/// State of a session that subscribes. Results are in the order of its channels.
pub(in crate::command) enum Progress {
    Entered(Vec<SubscribeResult>),
    /// A worker must encode these results; the channels wait for it.
    Large(Vec<SubscribeResult>, Vec<PendingChannel>),
    /// Subscribed; these are the encoded results.
    Encoded(Vec<Bytes>),
}

/// Outcome of a command that subscribes, when all answers are there.
#[expect(clippy::large_enum_variant, reason = "most are replies, and one is not boxed on its way")]
pub(in crate::command) enum Finished {
    Reply(Reply),
    /// The reply is large, and a worker must encode it.
    Large(ReplySource, Vec<PendingChannel>),
    /// A worker has encoded it.
    Encoded(Vec<Bytes>),
}

/// Subscribes to all channels, whose answers are all there. When their results are large, no subscription is made
/// before the reply is `encoded`, and publications are buffered as behind a slow broker.
///
/// # Errors
/// 100 when broker or presence failed, or the worker dropped the job; 112 when only a recovered subscription was
/// wanted; the disconnect of a session whose encoding cannot hold a payload. No subscription is made then.
pub(in crate::command) fn all(
    context: &mut CommandContext<'_>,
    mut channels: Vec<PendingChannel>,
    encoded: Option<Result<Encoded, ErrorCode>>,
) -> Result<Progress, CommandError> {
    if let Some(encoded) = encoded {
        return commit_encoded(context, channels, encoded).map(Progress::Encoded);
    }
    let decided: Result<Vec<_>, _> = channels.iter_mut().map(decide).collect();
    let decided = match decided {
        Ok(decided) => decided,
        Err(error) => {
            context.abandon(&channels);
            return Err(error.into());
        }
    };
    let costs = channels.iter().zip(&decided).map(|(pending_channel, (_, result))| {
        // Patches are searched for as well.
        encode_job::cost_of(result) << u32::from(pending_channel.gets_deltas())
    });
    let is_large = costs.sum::<usize>() > encode_job::COST_MAX;
    let subscriptions = channels.into_iter().zip(decided);
    if !is_large {
        let entered = subscriptions
            .map(|(pending_channel, (top, result))| commit(context, pending_channel, top, result));
        return Ok(Progress::Entered(entered.collect()));
    }
    let (results, channels) = subscriptions
        .map(|(pending_channel, (top, result))| pending_channel.defer(top, result))
        .unzip();
    Ok(Progress::Large(results, channels))
}

/// The large reply is encoded: the subscriptions are made with it, or dropped.
fn commit_encoded(
    context: &mut CommandContext<'_>,
    mut channels: Vec<PendingChannel>,
    encoded: Result<Encoded, ErrorCode>,
) -> Result<Vec<Bytes>, CommandError> {
    // A channel fails when more was published during the wait than its buffer holds.
    let failed = channels
        .iter_mut()
        .find_map(|pending_channel| pending_channel.slice.take().and_then(Result::err));
    let messages = match failed.map_or(encoded, Err) {
        Ok(Encoded { messages: Some(messages), saved }) => {
            context.session_table.counters.count_deltas(saved);
            Ok(messages)
        }
        Ok(Encoded { messages: None, .. }) => Err(Disconnect::INAPPROPRIATE_PROTOCOL.into()),
        Err(error) => Err(error.into()),
    };
    match messages {
        Ok(messages) => {
            for mut pending_channel in channels {
                let start = pending_channel.large.take().expect(COMPLETE);
                add_subscription(context, pending_channel, start);
            }
            Ok(messages)
        }
        Err(error) => {
            context.abandon(&channels);
            Err(error)
        }
    }
}

/// Makes a subscription whose result is sent at once.
fn commit(
    context: &mut CommandContext<'_>,
    pending_channel: PendingChannel,
    top: Position,
    mut result: SubscribeResult,
) -> SubscribeResult {
    if pending_channel.gets_deltas() {
        result.delta = true;
        context.effects.reply.compared += delta::payload_bytes(&result.publications);
        let saved = encode_job::shape(context.session().encoding, &mut result);
        context.session_table.counters.count_deltas(saved);
    }
    let start = pending_channel.start(top, &result);
    add_subscription(context, pending_channel, start);
    result
}

/// Adds a subscription: later publications are delivered, after the buffered ones, which the context delivers. Its
/// join comes through the inbox, so after the reply, which contains the recovered publications.
fn add_subscription(
    context: &mut CommandContext<'_>,
    pending_channel: PendingChannel,
    start: SubscriptionStart,
) {
    let SubscriptionStart { top, recovered, missed, has_newest } = start;
    let PendingChannel {
        channel,
        claimed,
        server_side,
        terms,
        tracking,
        delta,
        visibility,
        requested_data,
        view,
        buffered,
        ..
    } = pending_channel;
    let BufferedMessages { broadcasts, may_have_gap } = buffered;
    let node = context.node;
    let index = context.key.index;
    let own = context.session_table.add_subscription(
        index,
        &channel,
        NewSubscription { server_side, is_tile: false, terms },
    );
    let caught_up = if tracking.has_position() {
        CatchUp::from(top, broadcasts)
    } else {
        CatchUp::all(broadcasts)
    };
    if tracking.has_position() {
        track_position(context, own, caught_up.position);
    }
    if tracking.has_position() && may_have_gap {
        let check_at = deadlines::gap_check(node, context.now);
        context.session_table.report_possible_gap(&channel, check_at);
    }
    match delta {
        // The newest publication is the base of the first delta.
        Some(DeltaState::AwaitsStream) if has_newest => {
            context.session_table.agree(index, own, DeltaState::HasStream);
        }
        Some(mark) => context.session_table.agree(index, own, mark),
        // Subscriptions with deltas take no part in context compression.
        None if missed > 0 => context.session_table.recover(index, own),
        None => {}
    }
    context.effects.connection.catch_up(own, caught_up);
    if visibility.present {
        let renew_at = || deadlines::first_renewal(node, context.now);
        context.session_table.appeared(index, own, renew_at);
    }
    if visibility.has_entries {
        let renew_at = || deadlines::first_renewal(node, context.now);
        context.session_table.has_entries(index, own, renew_at);
        let session_table = &*context.session_table;
        MapPresence { node, session_table, now: context.now }.appear(index, own);
    }
    if visibility.wants_join_leave {
        context.session_table.want_join_leave(index, own);
    }
    if visibility.announced {
        session_effects::announce(node, context.session_table, index, own);
    }
    let key = SubscriptionKey { connection: index, channel: &channel };
    let recovery = recovered.map(|outcome| {
        let from = claimed.map_or(0, |claimed| claimed.offset);
        RecoveryEvent { outcome, from, to: top.offset }
    });
    flight_log::subscribed(node, context.session_table, key, recovery, context.now);
    count(context, &channel, recovered, missed);
    report_subscribed(context, own, &channel, requested_data);
    if let Some(view) = view {
        // It was checked when the subscribe began, and a new viewer leaves no tile.
        let _ = session_effects::set_view(node, context.session_table, key, *view);
    }
}

/// Makes a subscription positioned, at `position`.
fn track_position(context: &mut CommandContext<'_>, own: SubscriptionIndex, position: Position) {
    let shard = context.session_table.shard;
    let first = deadlines::first_position(context.node, shard, position, context.now);
    context.session_table.track_position(context.key.index, own, first);
}

/// Reports a subscription, and before the first one of a connect the client: it does not count as connected yet.
fn report_subscribed(
    context: &CommandContext<'_>,
    own: SubscriptionIndex,
    channel: &Arc<str>,
    requested_data: Bytes,
) {
    let Some(report) = &context.node.hooks().report else { return };
    let session = context.session();
    if !session.is_connected() && session.channel_count() == 1 {
        report(ClientReport::Connected { client: session.client_info(None) });
    }
    let client = session.client_info(Some(session.subscription(own)));
    let channel = Arc::clone(channel);
    let data = requested_data;
    report(ClientReport::Subscribed { client, channel, data });
}

/// Counts a subscription; `recovered` is the result of its recovery, if it requested one.
fn count(
    context: &mut CommandContext<'_>,
    channel: &str,
    recovered: Option<Result<(), Unrecovered>>,
    missed: usize,
) {
    let counters = &context.session_table.counters;
    counters.subscriptions_accepted.add(1);
    if let Some(recovered) = recovered {
        match recovered {
            Ok(()) => counters.recoveries.add(1),
            Err(cause) => {
                counters.failed_recoveries[cause as usize].add(1);
                let user = &context.session().user;
                context.node.log().unrecovered(cause, user, channel, context.now);
                context.effects.connection.unrecovered = Some(cause);
            }
        }
        counters.recovered_publications.add(missed as u64);
    }
}

const COMPLETE: &str = "every answer has come";
