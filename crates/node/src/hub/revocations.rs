//! Compares connections and subscriptions with the table of blocks and revocations, after a change of it.
//! In: a user, or the connections of the shard in steps → out: disconnects 3507 and 3005, unsubscribe pushes 2501.
//! Uses: the node's table, `session_table`. Never: a block of one user; a disconnect command ends the connections.
//! Changed here: how connections are found, and the codes. Checks of commands are in `command/credentials.rs`.

use std::sync::Arc;
use std::time::Instant;

use fanwire_auth::RevocationTable;
use fanwire_cluster::ConnectionSelector;
use fanwire_protocol::{Disconnect, UnsubscribeCode};

use super::Hub;
use super::selection::matching_or_connecting;
use crate::notice::Notice;
use crate::outbox::Outbox;
use crate::pending::Deferred;
use crate::session::ConnectionKey;
use crate::session_table::SessionTable;

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
        let keys = match user {
            Some(user) => {
                let user = user.as_ref().to_owned();
                let target = ConnectionSelector { user, ..ConnectionSelector::default() };
                matching_or_connecting(&self.session_table, &target.into())
            }
            None => {
                let index_end = self.session_table.index_end();
                let end = index_end.min(from.saturating_add(CONNECTIONS_AT_ONCE));
                if end < index_end {
                    let inbox = self.node.inbox(self.session_table.shard);
                    inbox.push(Notice::CheckTokens { user: None, from: end });
                }
                (from..end).filter_map(|index| self.session_table.key_at(index)).collect()
            }
        };
        for key in keys {
            let table = self.node.revocations().table();
            match revoked(table, &self.session_table, key, unix) {
                Revoked::Connection(disconnect) => self.disconnect(key, &disconnect, out),
                Revoked::Subscriptions(channels) => {
                    for channel in channels {
                        let code = UnsubscribeCode::SUBSCRIPTION_EXPIRED;
                        self.execute(key, Deferred::Unsubscribe(Some(channel), code), now, out);
                    }
                }
            }
        }
    }
}

/// The rights of a session that the table takes from it.
enum Revoked {
    Connection(Disconnect),
    /// Subscriptions to these channels; usually none.
    Subscriptions(Vec<Arc<str>>),
}

fn revoked<T>(
    table: &RevocationTable<T>,
    session_table: &SessionTable,
    key: ConnectionKey,
    unix: u64,
) -> Revoked {
    let Some(session) = session_table.session(key) else {
        return Revoked::Subscriptions(Vec::new());
    };
    if table.blocks(&session.user, unix) {
        return Revoked::Connection(Disconnect::PERMISSION_DENIED);
    }
    let token = session.grant.as_ref().and_then(|grant| grant.token.as_ref());
    if token.is_some_and(|token| table.refuses(token, &session.user, None, unix)) {
        return Revoked::Connection(Disconnect::EXPIRED);
    }
    let refused = session.subscriptions.iter().filter_map(|subscription| {
        let token = subscription.terms.as_ref()?.token.as_deref()?;
        let channel = session_table.subscribers().channel_subscribers(subscription.channel);
        let channel = &channel.channel;
        let is_refused = table.refuses(token, &session.user, Some(channel), unix);
        is_refused.then(|| Arc::clone(channel))
    });
    Revoked::Subscriptions(refused.collect())
}

/// Connections of one notice, some 0.5 ms.
const CONNECTIONS_AT_ONCE: u32 = 4096;
