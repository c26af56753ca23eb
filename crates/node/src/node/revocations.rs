//! Blocks and revocations of the server API: changes of the table on every node, and their effect on connections.
//! In: users, token ids, times; the list that all nodes share → out: table entries, notices in every inbox, changes to store.
//! Uses: the table, `router`, the store, the clock. Never: sessions; `hub/revocations.rs` compares them with the table.
//! Change here: checks before a change, and the order: first the table, then the shards, then the store.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Instant;

use fanwire_broker::{
    Answer, BrokerError, Epoch, Position, RevocationChange, RevocationCursor, RevocationEvent,
    RevocationKind, RevocationPage, RevocationStore,
};
use fanwire_cluster::ConnectionSelector;
use fanwire_protocol::{Disconnect, ErrorCode, StreamPosition};
use parking_lot::Mutex;

use super::Node;
use super::backends::temporary;
use crate::notice::Notice;
use crate::revocation::{RevocationTable, Subject, TableFull};
use crate::revocation_sync::{AfterPages, Received, RevocationSync};

/// The list that all nodes share. The table of this node is a copy of it.
pub(super) struct SharedRevocations {
    store: Arc<dyn RevocationStore>,
    sync: Mutex<RevocationSync>,
    /// For answers of the store, which come later.
    node: Weak<Node>,
}

/// A change of blocks and revocations that was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationError {
    /// It would end in the past.
    HasEnded,
    /// The table has a million entries.
    TableFull,
}

impl Node {
    /// Shares blocks and revocations with all nodes through `store`; before the first connection, and once. Connects fail
    /// with 100 until the list has been read.
    ///
    /// # Panics
    /// At the second call.
    pub fn share_revocations(self: &Arc<Self>, store: Arc<dyn RevocationStore>) {
        self.revocations.expect_load();
        let node = Arc::downgrade(self);
        let shared = SharedRevocations {
            store: Arc::clone(&store),
            sync: Mutex::default(),
            node: node.clone(),
        };
        assert!(self.shared_revocations.set(shared).is_ok(), "blocks are shared through one store");
        store.listen(Box::new(move |event| {
            if let Some(node) = node.upgrade() {
                node.receive_revocation(event);
            }
        }));
        self.read_revocations();
    }

    /// Whether blocks and revocations are known. Before that no client can connect.
    pub fn has_revocations(&self) -> bool {
        self.revocations.is_complete()
    }

    /// Entries of the tables `blocked`, `revoked` and `invalidated`; ended ones count until they are removed.
    pub fn revocation_counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.revocations.counts()
    }

    /// Makes a change here and on all other nodes. A later change replaces an earlier one of the same subject.
    /// Connections and subscriptions that it forbids end: 3507 for a blocked user, 3005 and 2501 for a token.
    ///
    /// # Errors
    /// A change that was not made; 100 in the answer when it was made here, but is not known to be stored.
    pub fn revoke(
        &self,
        kind: RevocationKind,
        change: RevocationChange,
        now: Instant,
    ) -> Result<Answer<(), ErrorCode>, RevocationError> {
        let change = RevocationChange { kind, ..change };
        if change.expire_at != 0 && change.expire_at <= self.clock.unix(now) {
            return Err(RevocationError::HasEnded);
        }
        self.apply_revocation(&change).map_err(|TableFull| RevocationError::TableFull)?;
        let Some(SharedRevocations { store, .. }) = self.shared_revocations.get() else {
            self.forgets_revocations.call_once(|| {
                tracing::warn!(
                    "blocks and revocations are in the memory of this node: a restart forgets them, and with engine.type redis it does not"
                );
            });
            return Ok(Answer::now(Ok(())));
        };
        Ok(store.change(&change, now).map_err(temporary))
    }

    /// Makes a change on this node.
    fn apply_revocation(&self, change: &RevocationChange) -> Result<(), TableFull> {
        self.insert_revocation(change)?;
        let user = &change.subject;
        match change.kind {
            RevocationKind::UnblockUser => {}
            RevocationKind::BlockUser => {
                let target =
                    ConnectionSelector { user: user.clone(), ..ConnectionSelector::default() };
                let disconnect = Disconnect::PERMISSION_DENIED;
                self.router.send_to_all_shards(&Notice::Disconnect { target, disconnect });
            }
            RevocationKind::RevokeToken => {
                self.router.send_to_all_shards(&Notice::CheckTokens { user: None, from: 0 });
            }
            RevocationKind::InvalidateTokens => {
                let user = Some(user.as_str().into());
                self.router.send_to_all_shards(&Notice::CheckTokens { user, from: 0 });
            }
        }
        Ok(())
    }

    /// Makes a change of the table. Returns whether the table says something else than before.
    fn insert_revocation(&self, change: &RevocationChange) -> Result<bool, TableFull> {
        let RevocationChange { kind, subject, channel, expire_at, issued_before } = change;
        let subject = match kind {
            RevocationKind::BlockUser | RevocationKind::UnblockUser => Subject::User(subject),
            RevocationKind::RevokeToken => Subject::Token(subject),
            RevocationKind::InvalidateTokens => Subject::TokensOf(subject, channel.as_deref()),
        };
        if *kind == RevocationKind::UnblockUser {
            self.revocations.remove(subject);
            return Ok(true);
        }
        self.revocations.insert(subject, *issued_before, *expire_at)
    }

    fn receive_revocation(&self, event: RevocationEvent) {
        let Some(shared) = self.shared_revocations.get() else { return };
        let must_read = match event {
            RevocationEvent::Change(position, change) => {
                let received = shared.sync.lock().receive(position, &change);
                if received != Received::Known {
                    self.apply_shared(&[change]);
                }
                received == Received::Ahead
            }
            RevocationEvent::MayHaveGap => true,
        };
        if must_read {
            self.read_revocations();
        }
    }

    /// Makes changes of any node.
    fn apply_shared(&self, changes: &[RevocationChange]) {
        for change in changes {
            if self.apply_revocation(change).is_err() {
                self.has_full_table.store(true, Relaxed);
            }
        }
    }

    /// Reads the list that all nodes share, if no reading is running.
    fn read_revocations(&self) {
        let Some(shared) = self.shared_revocations.get() else { return };
        if shared.sync.lock().begin() {
            self.revocations.begin_load();
            shared.read_page(RevocationCursor::default());
        }
    }

    fn receive_page(&self, shared: &SharedRevocations, page: Result<RevocationPage, BrokerError>) {
        let fail = || {
            let changes = shared.sync.lock().fail();
            self.apply_shared(&changes);
        };
        let Ok(RevocationPage { position, entries, next }) = page else { return fail() };
        let mut has_news = false;
        for entry in &entries {
            match self.insert_revocation(entry) {
                Ok(is_new) => has_news |= is_new,
                Err(TableFull) => self.has_full_table.store(true, Relaxed),
            }
        }
        if !shared.sync.lock().page(position, has_news) {
            return fail();
        }
        match next {
            Some(cursor) => shared.read_page(cursor),
            None => self.end_reading(shared),
        }
    }

    fn end_reading(&self, shared: &SharedRevocations) {
        let mut after = shared.sync.lock().end();
        while let AfterPages::Make(changes) = after {
            self.apply_shared(&changes);
            after = shared.sync.lock().end();
        }
        match after {
            AfterPages::Make(changes) | AfterPages::Failed(changes) => self.apply_shared(&changes),
            AfterPages::Done { has_lost_entries, has_news } => {
                self.revocations.end_load(has_lost_entries);
                if has_news {
                    let notice = Notice::CheckTokens { user: None, from: 0 };
                    self.router.send_to_all_shards(&notice);
                }
                if has_lost_entries {
                    tracing::warn!(
                        "Redis has lost blocks and revocations: this node keeps those that it knows until it ends, and nodes \
                         that start later do not have them; call the methods again"
                    );
                }
            }
        }
    }

    /// Once a second: reads the list again where that is due.
    pub(super) fn tick_revocations(&self, now: Instant) {
        self.revocations.sweep(self.clock.unix(now));
        if self.has_full_table.swap(false, Relaxed) {
            self.log_full_table(now);
        }
        let Some(shared) = self.shared_revocations.get() else { return };
        let others = self.cluster.revocation_positions().into_iter().filter_map(|position| {
            let StreamPosition { offset, epoch } = position;
            Some(Position { offset, epoch: Epoch::parse(&epoch)? })
        });
        let is_due = shared.sync.lock().is_due(others);
        if is_due {
            self.read_revocations();
        }
    }

    /// The position up to which this node has the list of all nodes.
    pub(super) fn revocation_position(&self) -> Option<StreamPosition> {
        let Position { offset, epoch } = self.shared_revocations.get()?.sync.lock().known()?;
        Some(StreamPosition { offset, epoch: epoch.as_str().to_owned() })
    }

    /// Warns that a change of another node did not fit.
    fn log_full_table(&self, now: Instant) {
        if let Some(repeats) = self.log_throttle.record("revocations", now) {
            tracing::warn!(
                "the table of blocks and revocations is full: a change of another node was not made{repeats}"
            );
        }
    }

    /// Blocked users and revoked tokens.
    pub(crate) fn revocations(&self) -> &RevocationTable {
        &self.revocations
    }

    /// Unix time in seconds at an instant.
    pub fn unix(&self, now: Instant) -> u64 {
        self.clock.unix(now)
    }
}

impl SharedRevocations {
    fn read_page(&self, from: RevocationCursor) {
        let node = Weak::clone(&self.node);
        self.store.page(from).then(move |page| {
            if let Some(node) = node.upgrade()
                && let Some(shared) = node.shared_revocations.get()
            {
                node.receive_page(shared, page);
            }
        });
    }
}
