//! Executes control commands of the server API and of this node for single connections (server API §3).
//! In: selectors with a subscription, a lifetime, an end → out: subscribe, refresh and unsubscribe pushes, disconnects.
//! Uses: `session_table` lists, `command` to subscribe. Never: permissions; the server has all of them.
//! Change here: how connections are selected, what clients receive.

use std::sync::Arc;
use std::time::Instant;

use fanwire_protocol::{Disconnect, ErrorCode, Refresh, UnsubscribeCode, encode_refresh_push};

use super::{Hub, SCRATCH_BYTES_MAX};
use crate::command;
use crate::filter::Filter;
use crate::notice::Notice;
use crate::outbox::Outbox;
use crate::pending::Deferred;
use crate::session::{ConnectionKey, Session};
use fanwire_cluster::{ConnectionSelector, Renewal, ServerSubscribe};

impl Hub {
    pub(super) fn disconnect_target(
        &mut self,
        target: &ConnectionSelector,
        disconnect: &Disconnect,
        out: &mut impl Outbox,
    ) {
        for key in self.matching_or_connecting(target) {
            self.disconnect(key, disconnect, out);
        }
    }

    /// Closes the connections of a user except the newest. The newest is read from the registry, so that of two
    /// simultaneous connects exactly one stays.
    pub(super) fn supersede(&mut self, user: &str, out: &mut impl Outbox) {
        let Some(newest) = self.node.registry().newest_of(user) else { return };
        let target = ConnectionSelector { user: user.to_owned(), ..ConnectionSelector::default() };
        for key in self.matching(&target) {
            if self.session_table.session(key).is_some_and(|session| session.client_id() != newest)
            {
                self.disconnect(key, &Disconnect::CONNECTION_LIMIT, out);
            }
        }
    }

    pub(super) fn unsubscribe_target(
        &mut self,
        target: &ConnectionSelector,
        channel: Option<&str>,
        code: UnsubscribeCode,
        out: &mut impl Outbox,
    ) {
        for key in self.matching_or_connecting(target) {
            // The session may be subscribing to that channel: then it subscribes first and unsubscribes afterwards.
            let later = || Deferred::Unsubscribe(channel.map(Into::into), code);
            if !self.defer(key, later, out) {
                self.unsubscribe_one(key, channel, code, out);
            }
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
        match channel.map(|channel| self.session_table.place_of(key.index, channel)) {
            Some(Some(place)) => self.end_subscription(key, place, code, out),
            Some(None) => {}
            None => self.end_all_subscriptions(key, code, out),
        }
    }

    fn end_all_subscriptions(
        &mut self,
        key: ConnectionKey,
        code: UnsubscribeCode,
        out: &mut impl Outbox,
    ) {
        let last = |session: &Session| {
            session.subscriptions.iter().rposition(|subscription| !subscription.is_tile)
        };
        while let Some(place) = self.session_table.session(key).and_then(last) {
            self.end_subscription(key, place, code, out);
        }
    }

    /// Existing subscriptions stay as they are.
    pub(super) fn subscribe_target(
        &mut self,
        target: &ConnectionSelector,
        command: &Arc<ServerSubscribe>,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        for key in self.matching_or_connecting(target) {
            let later = || Deferred::Subscribe(Arc::clone(command));
            if !self.defer(key, later, out) {
                self.subscribe_one(key, command, now, out);
            }
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
        if !self.is_connected(key) {
            return;
        }
        let mut turn = self.context(key, now);
        let outcome = command::subscribe_by_server(&mut turn, command);
        let backlog = turn.backlog;
        self.conclude(key, outcome, backlog, out);
        if self.session_table.pending().waits(key) {
            out.hold(key);
        }
    }

    pub(super) fn refresh_target(
        &mut self,
        target: &ConnectionSelector,
        renewal: &Renewal,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        for key in self.matching_or_connecting(target) {
            if self.is_connected(key) {
                self.refresh_one(key, renewal, now, out);
            } else {
                // The connect that is pending sets a lifetime: this one replaces it afterwards.
                self.defer(key, || Deferred::Refresh(Box::new(renewal.clone())), out);
            }
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
        if !self.is_connected(key) {
            return;
        }
        let mut turn = self.context(key, now);
        match command::refresh_by_order(&mut turn, renewal) {
            Some(refresh) => self.send_refresh_push(key, refresh, out),
            None => self.disconnect(key, &Disconnect::EXPIRED, out),
        }
    }

    fn send_refresh_push(&mut self, key: ConnectionKey, refresh: Refresh, out: &mut impl Outbox) {
        let Some(session) = self.session_table.session(key) else { return };
        self.scratch.clear();
        encode_refresh_push(session.encoding, refresh, &mut self.scratch);
        out.send(key, &self.scratch);
        self.scratch.shrink_to(SCRATCH_BYTES_MAX);
    }

    fn is_connected(&self, key: ConnectionKey) -> bool {
        self.session_table.session(key).is_some_and(Session::is_connected)
    }

    /// The connected sessions that a selector matches. Of all users, some of them: [`rest`](Self::rest) selects the next.
    pub(super) fn matching(&self, target: &ConnectionSelector) -> Vec<ConnectionKey> {
        let Ok(filter) = compiled(target) else { return Vec::new() };
        let matches = |index: &u32| {
            let session = self.session_table.at(*index);
            session.is_some_and(|one| one.is_connected() && passes(target, filter.as_ref(), one))
        };
        let key = |index| self.session_table.key_at(index);
        if target.is_of_all_users() {
            let end = self.session_table.index_end().min(end_of_step(target));
            return (target.from..end).filter(matches).filter_map(key).collect();
        }
        self.session_table.users().of(&target.user).filter(matches).filter_map(key).collect()
    }

    /// Also sessions that are authenticated and wait for their first channels: a command for a user must include
    /// connections that authenticated a moment before.
    pub(super) fn matching_or_connecting(&self, target: &ConnectionSelector) -> Vec<ConnectionKey> {
        let mut keys = self.matching(target);
        let Ok(filter) = compiled(target) else { return keys };
        let is_of_all = target.is_of_all_users();
        keys.extend(self.session_table.pending().connecting().filter(|key| {
            let session = self.session_table.session(*key);
            let is_in_step = (target.from..end_of_step(target)).contains(&key.index);
            session.is_some_and(|one| {
                (if is_of_all { is_in_step } else { *one.user == *target.user })
                    && passes(target, filter.as_ref(), one)
            })
        }));
        keys
    }

    /// The same notice for the next connections, where it is for so many that the shard does other work in between.
    pub(super) fn rest(&self, notice: &Notice) -> Option<Notice> {
        let target = notice.target().filter(|target| target.is_of_all_users())?;
        let from = end_of_step(target);
        (from < self.session_table.index_end()).then(|| notice.starting_at(from))
    }
}

fn end_of_step(target: &ConnectionSelector) -> u32 {
    target.from.saturating_add(CONNECTIONS_AT_ONCE)
}

fn compiled(target: &ConnectionSelector) -> Result<Option<Filter>, ErrorCode> {
    target.label_filter.as_deref().map(Filter::new).transpose()
}

/// Whether a session of the right user passes the other filters.
fn passes(target: &ConnectionSelector, labels: Option<&Filter>, session: &Session) -> bool {
    let mut buffer = uuid::Uuid::encode_buffer();
    let client: &str = session.id.hyphenated().encode_lower(&mut buffer);
    (target.session.is_empty() || target.session == session.session_id())
        && (target.client.is_empty() || target.client == client)
        && !target.whitelist.iter().any(|spared| spared == client)
        && labels.is_none_or(|filter| filter.matches(&session.app.labels))
}

/// Connections of one notice for all users.
const CONNECTIONS_AT_ONCE: u32 = 256;
