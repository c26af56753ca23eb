//! Compares connections and subscriptions with the table of blocks and revocations, after a change of it.
//! In: a user, or the connections of the shard in steps → out: disconnects 3507 and 3005, unsubscribe pushes 2501.
//! Uses: the node's table, `session_table`. Never: a block of one user; a disconnect command ends the connections.
//! Change here: how connections are found, and the codes. Checks of commands are in `command/credentials.rs`.

use std::sync::Arc;
use std::time::Instant;

use fanwire_cluster::ConnectionSelector;
use fanwire_protocol::{Disconnect, UnsubscribeCode};

use super::Hub;
use crate::notice::Notice;
use crate::outbox::Outbox;
use crate::pending::Deferred;
use crate::session::ConnectionKey;

impl Hub {
    /// Checks the connections of a user. Without one checks some connections, and leaves the next ones to another notice, so
    /// that the shard does other work in between.
    ///
    /// A subscribe that waits is not seen here: it looks at the table when it ends.
    pub(super) fn check_tokens(
        &mut self,
        user: Option<Arc<str>>,
        from: u32,
        now: Instant,
        out: &mut impl Outbox,
    ) {
        let unix = self.node.clock().unix(now);
        if let Some(user) = user {
            let user = user.as_ref().to_owned();
            let target = ConnectionSelector { user, ..ConnectionSelector::default() };
            for key in self.matching_or_connecting(&target) {
                self.check_tokens_of(key, unix, out);
            }
            return;
        }
        let end = self.session_table.index_end().min(from.saturating_add(CONNECTIONS_AT_ONCE));
        for index in from..end {
            if let Some(key) = self.session_table.key_at(index) {
                self.check_tokens_of(key, unix, out);
            }
        }
        if end < self.session_table.index_end() {
            let inbox = self.node.inbox(self.session_table.shard());
            inbox.push(Notice::CheckTokens { user: None, from: end });
        }
    }

    fn check_tokens_of(&mut self, key: ConnectionKey, unix: u64, out: &mut impl Outbox) {
        let (table, session_table) = (self.node.revocations(), &self.session_table);
        let Some(session) = session_table.session(key) else { return };
        if table.blocks(&session.user, unix) {
            return self.disconnect(key, &Disconnect::PERMISSION_DENIED, out);
        }
        let token = session.grant.as_ref().and_then(|grant| grant.token.as_ref());
        if token.is_some_and(|token| table.refuses(token, &session.user, None, unix)) {
            return self.disconnect(key, &Disconnect::EXPIRED, out);
        }
        let subscriptions = session.subscriptions.iter().filter_map(|subscription| {
            let token = subscription.terms.as_ref()?.token.as_deref()?;
            let channel = session_table.subscribers().channel_subscribers(subscription.channel);
            let channel = &channel.channel;
            let is_refused = table.refuses(token, &session.user, Some(channel), unix);
            is_refused.then(|| Arc::clone(channel))
        });
        for channel in subscriptions.collect::<Vec<_>>() {
            let code = UnsubscribeCode::SUBSCRIPTION_EXPIRED;
            let later = || Deferred::Unsubscribe(Some(Arc::clone(&channel)), code);
            if !self.defer(key, later, out) {
                self.unsubscribe_one(key, Some(&channel), code, out);
            }
        }
    }
}

/// Connections of one notice, some 0.5 ms.
const CONNECTIONS_AT_ONCE: u32 = 4096;
