//! Times at which something is due in a shard: ends of sessions and subscriptions, renewals of presence, position checks.
//! In: options, the clock, a session table → out: its timers, set.
//! Uses: the node's clock and options. Never: what happens then; the hub does it.
//! Changed here: how options become times. `Session::deadline` finds the earliest one of a session.

use std::time::{Duration, Instant};

use fanwire_broker::Position;

use crate::clock::Moment;
use crate::node::Node;
use crate::registry::ShardId;
use crate::session_table::{FirstPosition, SessionTable};

/// Sets a session's timer to its earliest deadline.
pub(crate) fn schedule(node: &Node, session_table: &mut SessionTable, index: u32) {
    let due = deadline(node, session_table, index);
    session_table.timers.sessions.set(index, due);
}

/// Sets the timers of all sessions.
pub(crate) fn reschedule(node: &Node, session_table: &mut SessionTable) {
    for index in 0..session_table.index_end() {
        schedule(node, session_table, index);
    }
}

/// The earliest deadline of a session.
pub(crate) fn deadline(node: &Node, session_table: &SessionTable, index: u32) -> Moment {
    let clock = node.clock();
    let options = &node.options().client;
    let delay = expired_close_delay(node);
    session_table.at(index).map_or(Moment::NEVER, |one| one.deadline(clock, options, delay))
}

/// How long a connection continues after its expiry time: until the client refreshes it, or no time with a refresh hook.
pub(crate) fn expired_close_delay(node: &Node) -> Duration {
    match node.hooks().refresh {
        Some(_) => Duration::ZERO,
        None => node.options().client.expired_close_delay,
    }
}

/// The first renewal of a session's presence. Sessions that subscribed at the same moment are renewed at different ones.
pub(crate) fn first_renewal(node: &Node, now: Instant) -> Moment {
    let interval = node.options().client.presence_update_interval;
    node.clock().moment(now).after(node.chance().second_half_of(interval))
}

/// The next renewal of a session's presence.
pub(crate) fn next_renewal(node: &Node, now: Instant) -> Moment {
    node.clock().moment(now).after(node.options().client.presence_update_interval)
}

/// Lets the tracked keys of a session be looked at regularly, while it has some.
pub(crate) fn watch_tracked_keys(
    node: &Node,
    session_table: &mut SessionTable,
    index: u32,
    now: Instant,
) {
    if session_table.tracks_keys(index) && !session_table.timers.tracked_keys.has(index) {
        session_table.timers.tracked_keys.set(index, next_renewal(node, now));
    }
}

/// Time from a confirmed position to the next check; `None` = never. The shards check one after the other, so that the
/// notice of the first one spares the others the read.
pub(crate) fn check_delay(node: &Node, shard: ShardId) -> Option<Duration> {
    let delay = node.options().client.channel_position_check_delay;
    (!delay.is_zero()).then(|| delay + CHECK_DISTANCE * u32::from(shard.0))
}

/// The position of a subscription that begins now, with the first check of its channel.
pub(crate) fn first_position(
    node: &Node,
    shard: ShardId,
    position: Position,
    now: Instant,
) -> FirstPosition {
    let now = node.clock().moment(now);
    let check_at = check_delay(node, shard).map_or(Moment::NEVER, |delay| now.after(delay));
    FirstPosition { position, now, check_at }
}

/// The check of a channel whose publications may have been lost. After a broken connection the checks of all channels are
/// spread over some time.
pub(crate) fn gap_check(node: &Node, now: Instant) -> Moment {
    node.clock().moment(now).after(node.chance().part_of(GAP_CHECKS_SPREAD))
}

/// Between the checks of two shards: some ticks of the wheel.
const CHECK_DISTANCE: Duration = Duration::from_millis(100);
/// The checks after a possible gap are spread over this time.
const GAP_CHECKS_SPREAD: Duration = Duration::from_secs(2);
