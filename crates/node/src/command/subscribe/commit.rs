//! The last step into channels: the subscriptions are made, all of them or none, and what they missed is told.
//! In: pending channels whose answers are all there → out: subscriptions and their results, or none and the refusal.
//! Uses: the session_table, patches for what was missed. Never: asks who may enter.
//! Change here: the order in which a subscription becomes visible. Answers are judged in `recover.rs`.

use bytes::Bytes;
use fanwire_broker::Position;
use fanwire_protocol::{Disconnect, ErrorCode, Reply, SubscribeResult};

use super::recover::judge;
use crate::command::{Refusal, Turn};
use crate::delta;
use crate::encode_job::{self, Encoded, Found};
use crate::pending::{BufferedMessages, Large, PendingChannel};
use crate::session_table::NewSubscription;
use crate::subscribers::{CatchUp, Mark};

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
    Large(Found, Vec<PendingChannel>),
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
    turn: &mut Turn<'_>,
    mut entries: Vec<PendingChannel>,
    encoded: Option<Result<Encoded, ErrorCode>>,
) -> Result<Progress, Refusal> {
    if let Some(encoded) = encoded {
        return told(turn, entries, encoded).map(Progress::Told);
    }
    let judged: Result<Vec<_>, _> = entries.iter_mut().map(judge).collect();
    let judged = match judged {
        Ok(judged) => judged,
        Err(error) => {
            turn.session_table.abandon(turn.node, turn.key.index, entries);
            return Err(error.into());
        }
    };
    let is_large = encode_job::are_large(judged.iter().map(|(_, result)| &result.publications));
    let seats = entries.into_iter().zip(judged);
    if !is_large {
        let entered = seats.map(|(entry, (top, result))| tell(turn, entry, top, result));
        return Ok(Progress::Entered(entered.collect()));
    }
    let (results, entries) = seats.map(|(entry, (top, result))| entry.put_off(top, result)).unzip();
    Ok(Progress::Large(results, entries))
}

/// The large reply is there: the channels are entered with it, or left.
fn told(
    turn: &mut Turn<'_>,
    mut entries: Vec<PendingChannel>,
    encoded: Result<Encoded, ErrorCode>,
) -> Result<Vec<Bytes>, Refusal> {
    // Something fails an entry for which more was published meanwhile than is held.
    let failed = entries.iter_mut().find_map(|entry| entry.stretch.take().and_then(Result::err));
    let messages = match failed.map_or(encoded, Err) {
        Ok(Encoded { messages: Some(messages), saved }) => {
            turn.session_table.counters().count_deltas(saved);
            Ok(messages)
        }
        Ok(Encoded { messages: None, .. }) => Err(Disconnect::INAPPROPRIATE_PROTOCOL.into()),
        Err(error) => Err(error.into()),
    };
    match messages {
        Ok(messages) => {
            for mut entry in entries {
                let Large { top, recovered, missed } = entry.large.take().expect(COMPLETE);
                add_subscription(turn, entry, top, missed);
                count(turn, recovered, missed);
            }
            Ok(messages)
        }
        Err(refusal) => {
            turn.session_table.abandon(turn.node, turn.key.index, entries);
            Err(refusal)
        }
    }
}

/// Enters a channel with a result that is told at once.
fn tell(
    turn: &mut Turn<'_>,
    entry: PendingChannel,
    top: Position,
    mut result: SubscribeResult,
) -> SubscribeResult {
    if entry.gets_deltas() {
        result.delta = true;
        turn.backlog.compared += delta::payload_bytes(&result.publications);
        let saved = delta::shape_missed(turn.session().encoding, &mut result.publications);
        turn.session_table.counters().count_deltas(saved);
    }
    let (missed, recovered) = (result.publications.len(), entry.outcome(&result));
    add_subscription(turn, entry, top, missed);
    count(turn, recovered, missed);
    result
}

/// Takes a new_subscription in a channel: what is published from now on is delivered, after what was held meanwhile, which is left to
/// the turn. Its join comes through the inbox, so after the reply, which tells so many publications as missed.
fn add_subscription(turn: &mut Turn<'_>, entry: PendingChannel, top: Position, missed: usize) {
    let PendingChannel { channel, server_side, terms, tracking, delta, visibility, held, .. } =
        entry;
    let BufferedMessages { broadcasts, is_doubted } = held;
    let (node, index) = (turn.node, turn.key.index);
    let place = turn.session_table.add_subscription(
        index,
        &channel,
        NewSubscription { server_side, terms },
    );
    let caught_up = match tracking.positioned {
        true => CatchUp::from(top, broadcasts),
        false => CatchUp::all(broadcasts),
    };
    if tracking.positioned {
        turn.session_table.position_tracker(node, index, place, caught_up.position, turn.now);
    }
    if tracking.positioned && is_doubted {
        turn.session_table.doubt(&channel, node.clock().moment(turn.now));
    }
    match delta {
        // What it recovered is the base of the first one.
        Some(mark) => {
            turn.session_table.agree(index, place, if missed > 0 { Mark::HasStream } else { mark })
        }
        // Those that agreed to deltas take no part in context.
        None if missed > 0 => turn.session_table.recover(index, place),
        None => {}
    }
    turn.backlog.add(place, caught_up);
    if visibility.present {
        turn.session_table.appeared(node, index, place, turn.now);
    }
    if visibility.hears {
        turn.session_table.hear(index, place);
    }
    if visibility.announced {
        turn.session_table.announce(node, index, place);
    }
}

/// Counts a subscription that was made; `recovered` says what became of its recovery, if it wanted one.
fn count(turn: &Turn<'_>, recovered: Option<bool>, missed: usize) {
    let counters = turn.session_table.counters();
    counters.subscriptions_accepted.add(1);
    if let Some(recovered) = recovered {
        let outcome = if recovered { &counters.recoveries } else { &counters.failed_recoveries };
        outcome.add(1);
        counters.recovered_publications.add(missed as u64);
    }
}

const COMPLETE: &str = "every answer has come";
