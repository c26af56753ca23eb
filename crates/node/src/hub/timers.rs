//! Timers of a session: ping, and the ends of stale, silent and expired connections (protocol §5–7, §21).
//! In: a due connection index and the moment → out: pings, unsubscribe pushes, disconnects; the timer is set again.
//! Uses: `session_table`, `session` deadlines. Never: clocks; a timer that fires early is set again.
//! Change here: what happens at a deadline. `Session::deadline` computes deadlines.

use std::sync::Arc;
use std::time::Duration;

use fanwire_protocol::{Disconnect, UnsubscribeCode, ping};

use super::Hub;
use crate::clock::Moment;
use crate::outbox::Outbox;
use crate::session::{CommandSource, ConnectionKey, Phase, Session, Subscription, closing};
use crate::session_table::expired_close_delay;

impl Hub {
    pub(super) fn fire(&mut self, index: u32, now: Moment, out: &mut impl Outbox) {
        let Some(key) = self.session_table.key_at(index) else { return };
        self.refresh_if_expired(key, now);
        self.refresh_expired_subscriptions(key, now);
        if let Some(disconnect) = self.verdict(key, now) {
            return self.disconnect(key, &disconnect, out);
        }
        self.end_expired_subscriptions(key, now, out);
        self.ping_if_due(key, now, out);
        self.session_table.schedule(&self.node, index);
        debug_assert!(
            !self.session_table.is_due(&self.node, index, now),
            "everything due was done"
        );
    }

    /// Why the connection must end now, if it must.
    fn verdict(&self, key: ConnectionKey, now: Moment) -> Option<Disconnect> {
        let session = self.session_table.session(key)?;
        if session.phase != Phase::Connected {
            return (session.beat_at <= now).then_some(Disconnect::STALE);
        }
        let (clock, options) = (self.node.clock(), &self.node.options().client);
        if closing(clock, session.expire_at, expired_close_delay(&self.node)) <= now {
            return Some(Disconnect::EXPIRED);
        }
        let mut server_side = session.subscriptions.iter().filter(|sub| sub.server_side);
        let delay = options.expired_sub_close_delay;
        if server_side.any(|sub| sub.closing(clock, delay) <= now) {
            return Some(Disconnect::SUBSCRIPTION_EXPIRED);
        }
        let is_silent = session.awaits_pong && session.pong_by <= now;
        // The shell does not read a waiting session, so its pong may be in the socket.
        let is_read = !session.is_held && !self.session_table.pending().waits(key);
        (is_silent && is_read).then_some(Disconnect::NO_PONG)
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
        let last = |session: &Session| session.subscriptions.iter().rposition(has_expired);
        while let Some(place) = self.session_table.session(key).and_then(last) {
            self.end_subscription(key, place, UnsubscribeCode::SUBSCRIPTION_EXPIRED, out);
        }
    }

    /// The shell reads a session again after a wait: its pong timeout starts again.
    pub(super) fn await_pong_again(&mut self, key: ConnectionKey, now: Moment) {
        let Self { node, session_table, .. } = self;
        if let Some(session) = session_table.session_mut(key)
            && session.awaits_pong
        {
            session.pong_by = now.after(node.options().client.pong_timeout);
            session_table.schedule(node, key.index);
        }
    }

    fn ping_if_due(&mut self, key: ConnectionKey, now: Moment, out: &mut impl Outbox) {
        let Self { node, session_table, .. } = self;
        let options = &node.options().client;
        let Some(session) = session_table.session_mut(key) else { return };
        if session.awaits_pong {
            if session.pong_by <= now {
                session.pong_by = now.after(options.pong_timeout.max(PONG_LATER)); // see `verdict`
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
        session_table.counters().pings.add(1);
    }
}

/// Least time until a waiting session is checked again.
const PONG_LATER: Duration = Duration::from_secs(1);
