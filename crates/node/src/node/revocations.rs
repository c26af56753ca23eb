//! Blocks and revocations of the server API: changes of the table on every node, and their effect on connections.
//! In: users, token ids, times; the list that all nodes share → out: table entries, notices in every inbox, changes to store, and
//! those that the store has lost.
//! Uses: the table, `router`, the store. Never: clocks, sessions; `hub/revocations.rs` compares them with the table.
//! Changed here: checks before a change, and the order: first the table, then the shards, then the store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once, Weak};
use std::time::Instant;

use fanwire_auth::{RevocationTable, Subject, TableFull};
use fanwire_broker::{
    Answer, BrokerError, Epoch, Position, Promise, RevocationChange, RevocationCursor,
    RevocationEvent, RevocationKind, RevocationPage, RevocationStore,
};
use fanwire_cluster::{AfterPages, Received, RevocationSync};
use fanwire_cluster::{Cluster, ConnectionSelector};
use fanwire_protocol::{Disconnect, ErrorCode, StreamPosition};
use parking_lot::Mutex;

use super::channels::temporary;
use super::log::NodeLog;
use crate::deliver::BroadcastRouter;
use crate::notice::Notice;

/// Blocks and revocations of a node: its table, and the list that all nodes share.
pub struct Revocations {
    table: RevocationTable<RevocationChange>,
    shared: Option<SharedRevocations>,
    /// The list has lost entries that the table has.
    has_lost_entries: AtomicBool,
    /// A change of another node did not fit into the table; logged by the next tick.
    has_full_table: AtomicBool,
    /// Logs once that a restart forgets the table.
    forgets: Once,
    router: Arc<BroadcastRouter>,
    /// How often the table has changed.
    changes: AtomicU64,
    /// Kept when the list has been read.
    first_load: Mutex<Option<Promise<(), ErrorCode>>>,
}

/// The list that all nodes share. The table of this node is a copy of it.
struct SharedRevocations {
    store: Arc<dyn RevocationStore>,
    sync: Mutex<RevocationSync>,
    /// This value, for answers of the store that come later.
    own: Weak<Revocations>,
}

/// A change of blocks and revocations that was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationError {
    /// It would end in the past.
    HasEnded,
    /// The table has a million entries.
    TableFull,
}

impl Revocations {
    /// With a store, blocks and revocations are shared with all nodes through it. Connects fail with 100 until its list has
    /// been read.
    pub(super) fn new(
        router: Arc<BroadcastRouter>,
        store: Option<Arc<dyn RevocationStore>>,
    ) -> Arc<Self> {
        let revocations = Arc::new_cyclic(|own| Self {
            table: RevocationTable::default(),
            shared: store.map(|store| SharedRevocations {
                store,
                sync: Mutex::default(),
                own: Weak::clone(own),
            }),
            has_lost_entries: AtomicBool::new(false),
            has_full_table: AtomicBool::new(false),
            forgets: Once::new(),
            router,
            changes: AtomicU64::new(0),
            first_load: Mutex::default(),
        });
        revocations.listen();
        revocations
    }

    /// Listens to the store, if there is one, and begins to read its list.
    fn listen(&self) {
        let Some(shared) = &self.shared else { return };
        self.table.expect_load();
        let own = Weak::clone(&shared.own);
        shared.store.listen(Box::new(move |event| {
            if let Some(own) = own.upgrade() {
                own.receive(event);
            }
        }));
        self.read_list();
    }

    /// Whether a restart of this node forgets blocks and revocations.
    pub fn are_forgotten(&self) -> bool {
        self.shared.is_none()
    }

    /// Whether blocks and revocations are known. Before that no client can connect.
    pub fn are_known(&self) -> bool {
        self.table.is_complete()
    }

    /// Completes when blocks and revocations are known. Only the last one that asked is answered; an earlier one gets 100.
    pub fn when_known(&self) -> Answer<(), ErrorCode> {
        let (promise, answer) = Answer::later();
        *self.first_load.lock() = Some(promise);
        if self.are_known() {
            self.keep_first_load();
        }
        answer
    }

    fn keep_first_load(&self) {
        let promise = self.first_load.lock().take();
        if let Some(promise) = promise {
            promise.keep(Ok(()));
        }
    }

    /// Entries of the tables `blocked`, `revoked` and `invalidated`; ended ones count until they are removed.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.table.counts()
    }

    /// A number that grows with each entry, for callers without a session that gets a notice.
    pub fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Makes a change here and on all other nodes, at the Unix second `unix`. A later change replaces an earlier one of the
    /// same subject.
    /// Connections and subscriptions that it forbids end: 3507 for a blocked user, 3005 and 2501 for a token.
    ///
    /// # Errors
    /// A change that was not made; 100 in the answer when it was made here, but is not known to be stored.
    pub fn revoke(
        &self,
        kind: RevocationKind,
        change: RevocationChange,
        now: Instant,
        unix: u64,
    ) -> Result<Answer<(), ErrorCode>, RevocationError> {
        let change = RevocationChange { kind, ..change };
        if change.expire_at != 0 && change.expire_at <= unix {
            return Err(RevocationError::HasEnded);
        }
        self.apply(&change).map_err(|TableFull| RevocationError::TableFull)?;
        let Some(SharedRevocations { store, .. }) = &self.shared else {
            self.forgets.call_once(|| {
                tracing::warn!(
                    "blocks and revocations are in the memory of this node: a restart forgets them, and with engine.memory.snapshot_path or engine.type redis it does not"
                );
            });
            return Ok(Answer::now(Ok(())));
        };
        Ok(store.change(&change, now).map_err(temporary))
    }

    /// Makes a change on this node.
    fn apply(&self, change: &RevocationChange) -> Result<(), TableFull> {
        self.insert(change)?;
        let user = &change.subject;
        match change.kind {
            RevocationKind::UnblockUser => {}
            RevocationKind::BlockUser => {
                let target =
                    ConnectionSelector { user: user.clone(), ..ConnectionSelector::default() };
                let disconnect = Disconnect::PERMISSION_DENIED;
                self.router
                    .send_to_all_shards(&Notice::Disconnect { target: target.into(), disconnect });
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
    fn insert(&self, change: &RevocationChange) -> Result<bool, TableFull> {
        let RevocationChange { kind, subject, channel, expire_at, issued_before } = change;
        let subject = match kind {
            RevocationKind::BlockUser | RevocationKind::UnblockUser => Subject::User(subject),
            RevocationKind::RevokeToken => Subject::Token(subject),
            RevocationKind::InvalidateTokens => Subject::TokensOf(subject, channel.as_deref()),
        };
        if *kind == RevocationKind::UnblockUser {
            self.table.remove(subject);
            return Ok(true);
        }
        let origin = Some(Box::new(change.clone()));
        let is_new = self.table.insert(subject, *issued_before, *expire_at, origin);
        self.changes.fetch_add(1, Relaxed);
        is_new
    }

    /// All blocks and revocations at the Unix second `unix`, as changes that make them.
    pub fn save(&self, unix: u64) -> Vec<RevocationChange> {
        self.table.origins(unix)
    }

    /// Goes on with those that another program saved. Its sessions obey them already. A store may lack the last ones.
    pub fn take_over(&self, changes: &[RevocationChange], now: Instant) {
        for change in changes {
            if self.insert(change).is_err() {
                self.has_full_table.store(true, Relaxed);
            }
            if let Some(shared) = &self.shared {
                shared.store.change(change, now).then(drop);
            }
        }
    }

    fn receive(&self, event: RevocationEvent) {
        let Some(shared) = &self.shared else { return };
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
            self.read_list();
        }
    }

    /// Makes changes of any node.
    fn apply_shared(&self, changes: &[RevocationChange]) {
        for change in changes {
            if self.apply(change).is_err() {
                self.has_full_table.store(true, Relaxed);
            }
        }
    }

    /// Reads the list that all nodes share, if no reading is running.
    fn read_list(&self) {
        let Some(shared) = &self.shared else { return };
        if shared.sync.lock().begin() {
            self.table.begin_load();
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
            match self.insert(entry) {
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
                self.table.end_load(has_lost_entries);
                self.keep_first_load();
                if has_news {
                    let notice = Notice::CheckTokens { user: None, from: 0 };
                    self.router.send_to_all_shards(&notice);
                }
                if has_lost_entries {
                    self.has_lost_entries.store(true, Relaxed);
                    tracing::warn!(
                        "Redis has lost blocks and revocations: this node stores those that it knows again"
                    );
                }
            }
        }
    }

    /// Once a second: removes what has ended at the Unix second `unix`, and reads the list again where that is due.
    pub(super) fn tick(&self, now: Instant, unix: u64, cluster: &Cluster, log: &NodeLog) {
        self.table.sweep(unix);
        if self.has_full_table.swap(false, Relaxed) {
            log.full_revocations(now);
        }
        let Some(shared) = &self.shared else { return };
        let others = cluster.revocation_positions().into_iter().filter_map(|position| {
            let StreamPosition { offset, epoch } = position;
            Some(Position { offset, epoch: Epoch::parse(&epoch)? })
        });
        let is_due = shared.sync.lock().is_due(others);
        if is_due {
            self.read_list();
        }
        if self.has_lost_entries.load(Relaxed) {
            self.restore(shared, now, unix);
        }
    }

    /// Stores entries again that the list has lost, some at a time. Each of them is lost until it comes back as a change, whichever
    /// node stored it; so what fails is tried again.
    fn restore(&self, shared: &SharedRevocations, now: Instant, unix: u64) {
        let mut lost = self.table.lost(unix, RESTORED_AT_ONCE);
        // Not in the order of a hash table. A user may be blocked and have invalid tokens, for some channels.
        lost.sort_unstable_by(|one, other| {
            let by_channel = one.subject.cmp(&other.subject).then(one.channel.cmp(&other.channel));
            by_channel.then(one.kind.cmp(&other.kind))
        });
        self.has_lost_entries.store(!lost.is_empty(), Relaxed);
        for change in lost {
            shared.store.restore(&change, now).then(drop);
        }
    }

    /// Whether the list lacks entries that this node stores again.
    pub(super) fn must_restore(&self) -> bool {
        self.has_lost_entries.load(Relaxed)
    }

    /// The position up to which this node has the list of all nodes.
    pub(super) fn position(&self) -> Option<StreamPosition> {
        let Position { offset, epoch } = self.shared.as_ref()?.sync.lock().known()?;
        Some(StreamPosition { offset, epoch: epoch.as_str().to_owned() })
    }

    /// Blocked users and revoked tokens.
    pub(crate) fn table(&self) -> &RevocationTable<RevocationChange> {
        &self.table
    }
}

impl SharedRevocations {
    fn read_page(&self, from: RevocationCursor) {
        let own = Weak::clone(&self.own);
        self.store.page(from).then(move |page| {
            if let Some(own) = own.upgrade()
                && let Some(shared) = &own.shared
            {
                own.receive_page(shared, page);
            }
        });
    }
}

/// Entries that a node stores again in a second. Redis needs some 40 ms for them.
const RESTORED_AT_ONCE: usize = 2_000;
