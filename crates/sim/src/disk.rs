//! The disk of a host: what the engine in memory keeps over a restart of its process.
//! In: snapshots, lists of changes, blocks → out: the state with which the next process starts.
//! Uses the rules of `fanwire-broker` for what a start may take from a snapshot. Never: files; of a crash it knows what that leaves.
//! Changed here: what outlives which end of a process. When a snapshot is made is in `world/snapshots.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{
    Answer, Bucket, Chance, ChangeMarks, MemoryState, Position, RestoreOptions, RevocationChange,
    RevocationCursor, RevocationKind, RevocationListener, RevocationPage, RevocationStore,
    Snapshot, SnapshotClock,
};
use parking_lot::Mutex;

/// A disk.
#[derive(Default)]
pub struct Disk {
    /// The newest whole snapshot.
    snapshot: Option<StoredSnapshot>,
    /// Lists of changes by the generation of their snapshot; `None` for a list from before the last start of the machine.
    changes: BTreeMap<u64, Option<Arc<ChangeList>>>,
    revocations: Arc<SavedRevocations>,
}

struct StoredSnapshot {
    generation: u64,
    bytes: Vec<u8>,
}

/// A list of changed buckets.
#[derive(Default)]
pub struct ChangeList(Mutex<BTreeSet<Bucket>>);

/// Blocks and revocations, which are on the disk before they are answered.
#[derive(Default)]
pub struct SavedRevocations(Mutex<Vec<RevocationChange>>);

impl Disk {
    /// The state with which a process starts; `None` if nothing can be taken from a snapshot.
    pub fn restore(&self, clock: SnapshotClock, chance: &dyn Chance) -> Option<MemoryState> {
        let mut bytes = self.snapshot.as_ref()?.bytes.as_slice();
        let snapshot = Snapshot::read(&mut bytes).expect("it is whole");
        let lists = self.changes.iter().map(|(generation, list)| {
            let changed = list.as_ref().map(|list| list.0.lock().iter().copied().collect());
            (*generation, changed)
        });
        let changes = snapshot.changes_since(lists)?;
        let options = RestoreOptions { changes: &changes, clock, is_left_out: &|_| false };
        Some(snapshot.restore(&options, chance).expect("it is whole"))
    }

    /// The generation of the next snapshot.
    pub fn next_generation(&self) -> u64 {
        let newest = self.changes.last_key_value().map_or(0, |(generation, _)| *generation);
        let found = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.generation);
        newest.max(found) + 1
    }

    /// An empty list of changes.
    pub fn begin_changes(&mut self, generation: u64) -> Arc<ChangeList> {
        let list = Arc::<ChangeList>::default();
        self.changes.insert(generation, Some(list.clone()));
        list
    }

    /// A snapshot is whole.
    pub fn put(&mut self, generation: u64, bytes: Vec<u8>) {
        self.snapshot = Some(StoredSnapshot { generation, bytes });
        self.changes = self.changes.split_off(&generation);
    }

    /// The machine stops: what was not synced may be gone.
    pub fn lose_changes(&mut self) {
        self.changes.values_mut().for_each(|list| *list = None);
    }

    pub fn revocations(&self) -> Arc<SavedRevocations> {
        Arc::clone(&self.revocations)
    }
}

impl ChangeMarks for ChangeList {
    fn mark(&self, bucket: Bucket) {
        self.0.lock().insert(bucket);
    }
}

impl RevocationStore for SavedRevocations {
    fn listen(&self, _: RevocationListener) {}

    fn change(&self, change: &RevocationChange, _: Instant) -> Answer<()> {
        let mut saved = self.0.lock();
        if change.kind == RevocationKind::UnblockUser {
            let is_ended = |it: &RevocationChange| {
                it.kind == RevocationKind::BlockUser && it.subject == change.subject
            };
            saved.retain(|it| !is_ended(it));
        } else {
            saved.push(change.clone());
        }
        Answer::now(Ok(()))
    }

    fn page(&self, _: RevocationCursor) -> Answer<RevocationPage> {
        let entries = self.0.lock().clone();
        Answer::now(Ok(RevocationPage { position: Position::default(), entries, next: None }))
    }
}
