//! The last step into channels: the subscriptions are made, all of them or none, and what they missed is told.
//! In: pending channels whose answers are all there → out: subscriptions and their results, or none and the refusal.
//! Uses: the session_table, patches for what was missed. Never: asks who may enter.
//! Change here: the order in which a subscription becomes visible. Answers are judged in `recover.rs`.

use bytes::Bytes;
use fanwire_broker::Position;
use fanwire_protocol::{Disconnect, ErrorCode, Reply, SubscribeResult};

use super::recover::decide;
use crate::command::{CommandContext, Refusal};
use crate::delta;
use crate::encode_job::{self, Encoded, ReplySource};
use crate::pending::{BufferedMessages, Large, PendingChannel};
use crate::session_table::NewSubscription;
use crate::subscribers::{CatchUp, DeltaState};

/// How far a session is that enters channels. Results are in the order of its entries.
pub(in crate::command) enum Progress {
    Entered(Vec<SubscribeResult>),
    /// This is to be encoded elsewhere, and the entries to wait for it.
    Large(Vec<SubscribeResult>, Vec<PendingChannel>),
    /// Entered, and these tell it so.
    Told(Vec<Bytes>),
}

/// What a command that enters channels comes to when their answers are all there.
#[expect(clippy::large_enum_variant, reason = "most are replies, and one is not boxed on its way")]
pub(in crate::command) enum Finished {
    Reply(Reply),
    /// What it is told is large, and to be encoded elsewhere.
    Large(ReplySource, Vec<PendingChannel>),
    /// It was, and this is it.
    Told(Vec<Bytes>),
}

/// Enters all channels, of which every answer is there. When what they say to their new subscriber is large, none is entered
/// before that is `encoded`, and what is published meanwhile is held as behind a slow broker.
///
/// # Errors
/// 100 when broker or presence failed, or nobody encoded; 112 when only a recovered subscription was wanted; the disconnect of
/// who cannot be told in its encoding. None is entered then.
pub(in crate::command) fn all(
    context: &mut CommandContext<'_>,
    mut channels: Vec<PendingChannel>,
    encoded: Option<Result<Encoded, ErrorCode>>,
) -> Result<Progress, Refusal> {
    if let Some(encoded) = encoded {
        return commit_encoded(context, channels, encoded).map(Progress::Told);
    }
    let decided: Result<Vec<_>, _> = channels.iter_mut().map(decide).collect();
    let decided = match decided {
        Ok(decided) => decided,
        Err(error) => {
            context.session_table.abandon(context.node, context.key.index, channels);
            return Err(error.into());
        }
    };
    let is_large = encode_job::are_large(decided.iter().map(|(_, result)| &result.publications));
    let seats = channels.into_iter().zip(decided);
    if !is_large {
        let entered = seats
            .map(|(pending_channel, (top, result))| commit(context, pending_channel, top, result));
        return Ok(Progress::Entered(entered.collect()));
    }
    let (results, channels) =
        seats.map(|(pending_channel, (top, result))| pending_channel.defer(top, result)).unzip();
    Ok(Progress::Large(results, channels))
}

/// The large reply is there: the channels are entered with it, or left.
fn commit_encoded(
    context: &mut CommandContext<'_>,
    mut channels: Vec<PendingChannel>,
    encoded: Result<Encoded, ErrorCode>,
) -> Result<Vec<Bytes>, Refusal> {
    // Something fails an entry for which more was published meanwhile than is held.
    let failed = channels
        .iter_mut()
        .find_map(|pending_channel| pending_channel.stretch.take().and_then(Result::err));
    let messages = match failed.map_or(encoded, Err) {
        Ok(Encoded { messages: Some(messages), saved }) => {
            context.session_table.counters().count_deltas(saved);
            Ok(messages)
        }
        Ok(Encoded { messages: None, .. }) => Err(Disconnect::INAPPROPRIATE_PROTOCOL.into()),
        Err(error) => Err(error.into()),
    };
    match messages {
        Ok(messages) => {
            for mut pending_channel in channels {
                let Large { top, recovered, missed } =
                    pending_channel.large.take().expect(COMPLETE);
                add_subscription(context, pending_channel, top, missed);
                count(context, recovered, missed);
            }
            Ok(messages)
        }
        Err(refusal) => {
            context.session_table.abandon(context.node, context.key.index, channels);
            Err(refusal)
        }
    }
}

/// Enters a channel with a result that is told at once.
fn commit(
    context: &mut CommandContext<'_>,
    pending_channel: PendingChannel,
    top: Position,
    mut result: SubscribeResult,
) -> SubscribeResult {
    if pending_channel.gets_deltas() {
        result.delta = true;
        context.backlog.compared += delta::payload_bytes(&result.publications);
        let saved = delta::shape_missed(context.session().encoding, &mut result.publications);
        context.session_table.counters().count_deltas(saved);
    }
    let (missed, recovered) = (result.publications.len(), pending_channel.outcome(&result));
    add_subscription(context, pending_channel, top, missed);
    count(context, recovered, missed);
    result
}

/// Takes a new_subscription in a channel: what is published from now on is delivered, after what was held meanwhile, which is left to
/// the turn. Its join comes through the inbox, so after the reply, which tells so many publications as missed.
fn add_subscription(
    context: &mut CommandContext<'_>,
    pending_channel: PendingChannel,
    top: Position,
    missed: usize,
) {
    let PendingChannel {
        channel, server_side, terms, tracking, delta, visibility, buffered, ..
    } = pending_channel;
    let BufferedMessages { broadcasts, is_doubted } = buffered;
    let (node, index) = (context.node, context.key.index);
    let place = context.session_table.add_subscription(
        index,
        &channel,
        NewSubscription { server_side, terms },
    );
    let caught_up = match tracking.positioned {
        true => CatchUp::from(top, broadcasts),
        false => CatchUp::all(broadcasts),
    };
    if tracking.positioned {
        context.session_table.position_tracker(node, index, place, caught_up.position, context.now);
    }
    if tracking.positioned && is_doubted {
        context.session_table.report_possible_gap(&channel, node.clock().moment(context.now));
    }
    match delta {
        // What it recovered is the base of the first one.
        Some(mark) => context.session_table.agree(
            index,
            place,
            if missed > 0 { DeltaState::HasStream } else { mark },
        ),
        // Those that agreed to deltas take no part in context.
        None if missed > 0 => context.session_table.recover(index, place),
        None => {}
    }
    context.backlog.add(place, caught_up);
    if visibility.present {
        context.session_table.appeared(node, index, place, context.now);
    }
    if visibility.wants_join_leave {
        context.session_table.hear(index, place);
    }
    if visibility.announced {
        context.session_table.announce(node, index, place);
    }
}

/// Counts a subscription that was made; `recovered` says what became of its recovery, if it wanted one.
fn count(context: &CommandContext<'_>, recovered: Option<bool>, missed: usize) {
    let counters = context.session_table.counters();
    counters.subscriptions_accepted.add(1);
    if let Some(recovered) = recovered {
        let outcome = if recovered { &counters.recoveries } else { &counters.failed_recoveries };
        outcome.add(1);
        counters.recovered_publications.add(missed as u64);
    }
}

const COMPLETE: &str = "every answer has come";
