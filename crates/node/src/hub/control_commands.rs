//! Executes control commands of the server API and of this node for single connections (server API §3).
//! In: selectors with a subscription, a lifetime, an end → out: subscribe, refresh and unsubscribe pushes, disconnects.
//! Uses: `session_table` lists, `command` to subscribe. Never: permissions; the server has all of them.
//! Changed here: what clients receive. `hub/selection.rs` selects connections.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::Renewal;
use fanwire_cluster::ServerSubscribe;
use fanwire_protocol::{Disconnect, UnsubscribeCode, encode_refresh_push};

use super::Hub;
use super::selection::matching_or_connecting;
use crate::command;
use crate::map_release;
use crate::outbox::Outbox;
use crate::pending::Deferred;
use crate::session::{ConnectionKey, Session, Subscription};
use crate::session_table::selection::SelectedConnections;

impl Hub {
    /// Executes work for the sessions that a selector matches: now, or after the command that a session waits for.
    pub(super) fn execute_for(
        &mut self,
        target: &SelectedConnections,
        work: impl Fn() -> Deferred,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        for key in matching_or_connecting(&self.session_table, target) {
            self.execute(key, work(), now, out);
        }
    }

    /// Executes work for a session: now, or after the command that it waits for. It may be subscribing to a channel that it
    /// is to leave: then it subscribes first and leaves afterwards.
    pub(super) fn execute(
        &mut self,
        key: ConnectionKey,
        work: Deferred,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        // A lifetime is set at once, except during the connect, which sets one itself.
        let is_connected = self.session_table.session(key).is_some_and(Session::is_connected);
        let is_at_once = is_connected && matches!(work, Deferred::Refresh(_));
        if is_at_once || !self.session_table.pending.waits(key) {
            self.run_deferred(key, work, now, out);
        } else {
            self.defer(key, || work, out);
        }
    }

    /// Ends the subscription of a session to one channel, if it has one, or to all.
    pub(super) fn unsubscribe_one(
        &mut self,
        key: ConnectionKey,
        channel: Option<&str>,
        code: UnsubscribeCode,
        out: &mut impl Outbox,
    ) {
        if self.session_table.session(key).is_none() {
            return;
        }
        if let Some(channel) = channel {
            let table = &mut self.session_table;
            map_release::end(&self.node, table, key.index, channel);
            if let Some(own) = self.session_table.subscription_to(key.index, channel) {
                self.end_subscription(key, own, code, out);
            }
            return;
        }
        map_release::end_all(&self.node, &mut self.session_table, key.index);
        let is_of_client = |subscription: &Subscription| !subscription.is_tile;
        let last = |session: &Session| session.last_subscription(is_of_client);
        while let Some(own) = self.session_table.session(key).and_then(last) {
            self.end_subscription(key, own, code, out);
        }
    }

    /// Starts a subscription of a session that does not wait, if it is connected.
    pub(super) fn subscribe_one(
        &mut self,
        key: ConnectionKey,
        command: &Arc<ServerSubscribe>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if !self.session_table.session(key).is_some_and(Session::is_connected) {
            return;
        }
        let mut turn = self.context(key, now);
        let outcome = command::subscribe_by_server(&mut turn, command);
        let effects = turn.effects;
        self.conclude(key, outcome, effects, out);
        if self.session_table.pending.waits(key) {
            out.hold(key);
        }
    }

    /// Sets the lifetime of a session, if it is connected.
    pub(super) fn refresh_one(
        &mut self,
        key: ConnectionKey,
        renewal: &Renewal,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        if !self.session_table.session(key).is_some_and(Session::is_connected) {
            return;
        }
        let mut turn = self.context(key, now);
        match command::refresh_by_server(&mut turn, renewal) {
            Some(refresh) => self.write(key, out, |encoding, scratch| {
                encode_refresh_push(encoding, refresh, scratch);
            }),
            None => self.disconnect(key, &Disconnect::EXPIRED, out),
        }
    }
}
