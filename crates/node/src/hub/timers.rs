//! Timers of a session: ping, and the ends of stale, silent and expired connections (protocol §5–7, §21).
//! In: a due connection index and the moment → out: pings, unsubscribe pushes, disconnects; the timer is set again.
//! Uses: `session_table`, `session` deadlines. Never: clocks; a timer that fires early is set again.
//! Changed here: what happens at a deadline. `Session::deadline` computes deadlines.

use std::sync::Arc;
use std::time::Duration;

use fanwire_protocol::{Disconnect, UnsubscribeCode, ping};

use super::{Hub, refresh};
use crate::clock::Moment;
use crate::deadlines;
use crate::node::Node;
use crate::outbox::Outbox;
use crate::session::{CommandSource, ConnectionKey, Phase, Session, Subscription, closing};
use crate::session_table::SessionTable;

impl Hub {
    /// Does what is due for a session.
    pub(super) fn fire(&mut self, index: u32, now: Moment, out: &mut impl Outbox) {
        let Some(key) = self.session_table.key_at(index) else { return };
        refresh::ask_if_expired(&self.node, &mut self.session_table, key, now);
        refresh::ask_for_expired_subscriptions(self, key, now);
        if let Some(disconnect) = due_disconnect(&self.node, &self.session_table, key, now) {
            return self.disconnect(key, &disconnect, out);
        }
        self.end_expired_subscriptions(key, now, out);
        ping_if_due(&self.node, &mut self.session_table, key, now, out);
        deadlines::schedule(&self.node, &mut self.session_table, index);
        debug_assert!(
            deadlines::deadline(&self.node, &self.session_table, index) > now,
            "everything due was done"
        );
    }

    /// Client-side subscriptions that were not refreshed end with 2501.
    fn end_expired_subscriptions(
        &mut self,
        key: ConnectionKey,
        now: Moment,
        out: &mut impl Outbox,
    ) {
        let delay = self.node.options().client.expired_sub_close_delay;
        let node = Arc::clone(&self.node);
        let has_expired =
            |subscription: &Subscription| subscription.closing(node.clock(), delay) <= now;
        let last = |session: &Session| session.last_subscription(has_expired);
        while let Some(own) = self.session_table.session(key).and_then(last) {
            self.end_subscription(key, own, UnsubscribeCode::SUBSCRIPTION_EXPIRED, out);
        }
    }
}

/// Why the connection must end now, if it must.
fn due_disconnect(
    node: &Node,
    session_table: &SessionTable,
    key: ConnectionKey,
    now: Moment,
) -> Option<Disconnect> {
    let session = session_table.session(key)?;
    if session.phase != Phase::Connected {
        return (session.beat_at <= now).then_some(Disconnect::STALE);
    }
    let clock = node.clock();
    let options = &node.options().client;
    if closing(clock, session.expire_at, deadlines::expired_close_delay(node)) <= now {
        return Some(Disconnect::EXPIRED);
    }
    let mut server_side = session.subscriptions.iter().filter(|sub| sub.server_side);
    let delay = options.expired_sub_close_delay;
    if server_side.any(|sub| sub.closing(clock, delay) <= now) {
        return Some(Disconnect::SUBSCRIPTION_EXPIRED);
    }
    let is_silent = session.awaits_pong && session.pong_by <= now;
    // The shell does not read a waiting session, so its pong may be in the socket.
    let is_read = !session.is_held && !session_table.pending.waits(key);
    (is_silent && is_read).then_some(Disconnect::NO_PONG)
}

/// The shell reads a session again after a wait: its pong timeout starts again.
pub(super) fn await_pong_again(
    node: &Node,
    session_table: &mut SessionTable,
    key: ConnectionKey,
    now: Moment,
) {
    if let Some(session) = session_table.session_mut(key)
        && session.awaits_pong
    {
        session.pong_by = now.after(node.options().client.pong_timeout);
        deadlines::schedule(node, session_table, key.index);
    }
}

fn ping_if_due(
    node: &Node,
    session_table: &mut SessionTable,
    key: ConnectionKey,
    now: Moment,
    out: &mut impl Outbox,
) {
    let options = &node.options().client;
    let Some(session) = session_table.session_mut(key) else { return };
    if session.awaits_pong {
        if session.pong_by <= now {
            session.pong_by = now.after(options.pong_timeout.max(PONG_LATER)); // see `due_disconnect`
        }
        return;
    }
    if session.beat_at > now {
        return;
    }
    let is_unidirectional = session.command_source == CommandSource::None;
    session.awaits_pong = session.frame_ping || !is_unidirectional;
    session.pong_by = now.after(options.pong_timeout);
    session.beat_at = now.after(options.ping_interval);
    if session.frame_ping {
        out.ping(key);
    }
    if !session.frame_ping || is_unidirectional {
        out.send(key, ping(session.encoding));
    }
    session_table.counters.pings.add(1);
}

/// Least time until a waiting session is checked again.
const PONG_LATER: Duration = Duration::from_secs(1);
