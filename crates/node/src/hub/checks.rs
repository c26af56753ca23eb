//! Position checks (protocol §10): one read of the stream's top for all subscribers of a channel.
//! In: a channel whose check is due; the top of its stream, as a notice → out: that notice, to every shard with
//! subscribers; the subscriptions that lost their position.
//! Uses: the position tracker of the channel, the stream's top through the node. Never: clocks.
//! Changed here: when positions are checked. `subscribers/position_tracker.rs` decides which position is lost.

use std::time::{Duration, Instant};

use fanwire_broker::Position;

use crate::broadcast::Broadcast;
use crate::clock::Moment;
use crate::deadlines;
use crate::index::SubscriptionIndex;
use crate::node::Node;
use crate::session::ConnectionKey;
use crate::session_table::SessionTable;
use crate::subscribers::{PositionCheck, PositionStep, PositionTracker, PossibleGap};

/// Subscriptions that lost their position. The hub ends them.
pub(super) type Lost = Vec<(ConnectionKey, SubscriptionIndex)>;

/// A channel that was active within `client.channel_position_check_delay` needs no check. Otherwise the node
/// reads the top of its stream and sends it to every shard with subscribers: the notice arrives behind all
/// publications up to that top, so a subscriber that lacks one of them then will never get it.
///
/// The first shard whose check is due does this for the others, whose checks are postponed when the notice
/// arrives. The same timer ends a possible gap: publications in flight had their time, and a subscriber that
/// still lacks one lost its position.
pub(super) fn check(
    node: &Node,
    session_table: &mut SessionTable,
    channel: u32,
    now: Instant,
) -> Lost {
    let moment = node.clock().moment(now);
    let Some(delay) = deadlines::check_delay(node, session_table.shard) else { return Lost::new() };
    if session_table.subscribers().get(channel).is_none() {
        return Lost::new();
    }
    let Some(position_tracker) = tracker_mut(session_table, channel) else { return Lost::new() };
    let over = position_tracker.possible_gap.take_if(|possible_gap| possible_gap.until <= moment);
    let mut due = match over {
        _ if position_tracker.may_have_gap => moment,
        Some(_) => moment.after(delay),
        None => position_tracker.sure_at.after(delay),
    };
    if due <= moment {
        let may_have_gap = std::mem::take(&mut position_tracker.may_have_gap);
        due = moment.after(delay);
        let known = position_tracker.furthest();
        let name = &session_table.subscribers().channel_subscribers(channel).channel;
        let read = node.channels().top_of_any(name, now);
        node.channels().send_position(name, known, may_have_gap, read);
    }
    session_table.schedule_check(channel, due);
    over.map(|PossibleGap { top, .. }| lacking(session_table, channel, top)).unwrap_or_default()
}

/// A publication that took longer than `client.channel_position_max_time_lag` ends the positioned subscriptions
/// of its channel that do not have it; they recover from the stream. Subscribers without a position receive it
/// late.
///
/// Subscriptions that have it recovered it just now; ending them as well would end them again for each late
/// publication.
pub(super) fn lagging(
    node: &Node,
    session_table: &SessionTable,
    late: &Broadcast,
    now: Instant,
) -> Lost {
    let lag_max = node.options().client.channel_position_max_time_lag;
    if lag_max.is_zero() || late.position().offset == 0 {
        return Lost::new();
    }
    if late.age(node.clock().unix_ms(now)).is_none_or(|age| age <= lag_max) {
        return Lost::new();
    }
    let Some(channel) = session_table.subscribers().find(late.channel()) else {
        return Lost::new();
    };
    let position = late.position();
    positioned(session_table, channel, |position_tracker, connection| {
        position_tracker.step(connection, position) != PositionStep::Known
    })
}

/// The top of the stream has arrived.
pub(super) fn compare(
    session_table: &mut SessionTable,
    channel: &str,
    check: PositionCheck,
    now: Moment,
) -> Lost {
    let PositionCheck { top, is_in_order, has_lost_end } = check;
    let Some(channel) = session_table.subscribers().find(channel) else { return Lost::new() };
    // No publication in flight leads to another epoch, or backwards.
    let lost = positioned(session_table, channel, |position_tracker, connection| {
        position_tracker.is_elsewhere(connection, top)
            || is_in_order && position_tracker.lacks(connection, top)
            || has_lost_end && position_tracker.is_beyond(connection, top)
    });
    let may_come = !is_in_order && !lacking(session_table, channel, top).is_empty();
    let Some(position_tracker) = tracker_mut(session_table, channel) else { return lost };
    if may_come {
        suspect(session_table, channel, top, now);
    } else if !position_tracker.confirm(check, now) {
        session_table.schedule_check(channel, now); // Something may have been published since: the next check shows it.
    }
    lost
}

/// Changes of a channel may have been lost. Where its subscribers hold a state without a position, none of them can find out
/// whether it missed one, so all of them read it again.
pub(super) fn invalidated(node: &Node, session_table: &SessionTable, channel: &str) -> Lost {
    let Some(index) = session_table.subscribers().find(channel) else { return Lost::new() };
    if !node.channels().has_state_without_position(channel) {
        return Lost::new();
    }
    let list = &session_table.subscribers().channel_subscribers(index).list;
    let all = list
        .iter()
        .filter_map(|one| Some((session_table.key_at(one.connection)?, one.subscription())));
    all.collect()
}

/// Some subscribers lack publications that may be in flight. An earlier possible gap keeps its time as long as a
/// subscriber lacks it; then the top is read again.
fn suspect(session_table: &mut SessionTable, channel: u32, top: Position, now: Moment) {
    let before = tracker_mut(session_table, channel)
        .and_then(|it| it.possible_gap)
        .filter(|before| !lacking(session_table, channel, before.top).is_empty());
    let Some(position_tracker) = tracker_mut(session_table, channel) else { return };
    if let Some(before) = before {
        position_tracker.may_have_gap |= before.top != top;
        return;
    }
    let until = now.after(FLIGHT_TIME_MAX);
    position_tracker.possible_gap = Some(PossibleGap { top, until });
    if !position_tracker.may_have_gap {
        session_table.schedule_check(channel, until); // else it is looked at sooner
    }
}

fn tracker_mut(session_table: &mut SessionTable, channel: u32) -> Option<&mut PositionTracker> {
    let channel_subscribers = session_table.subscribers_mut().channel_subscribers_mut(channel);
    channel_subscribers.position_tracker.as_deref_mut()
}

/// The positioned subscribers of a channel that lack a publication up to `top`.
fn lacking(session_table: &SessionTable, channel: u32, top: Position) -> Lost {
    positioned(session_table, channel, |position_tracker, connection| {
        position_tracker.lacks(connection, top)
    })
}

/// The positioned subscribers of a channel for which `are` holds.
fn positioned(
    session_table: &SessionTable,
    channel: u32,
    are: impl Fn(&PositionTracker, u32) -> bool,
) -> Lost {
    let channel_subscribers = session_table.subscribers().channel_subscribers(channel);
    let Some(position_tracker) = channel_subscribers.position_tracker.as_deref() else {
        return Lost::new();
    };
    let lost = channel_subscribers.list.iter().filter_map(|one| {
        let session = session_table.at(one.connection)?;
        let is_positioned = session.subscription(one.subscription()).positioned;
        let is_meant = is_positioned && are(position_tracker, one.connection);
        is_meant.then_some((session_table.key_at(one.connection)?, one.subscription()))
    });
    lost.collect()
}

/// How long a publication may be in flight after the broker reported it.
const FLIGHT_TIME_MAX: Duration = Duration::from_secs(5);
