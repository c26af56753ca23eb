//! The file that keeps the memory engine over a restart (`engine.memory.snapshot_path`): read at the start, written while the server runs.
//! In: the configuration, the broker → out: the state that the broker begins with; a new file now and then, and at a planned stop.
//! Uses a blocking thread for each write. Never: knows what is in the file; `broker` makes and checks its content.
//! Changed here: when a snapshot is made, and what a start does with a file that it cannot use. Files are in `snapshots/files.rs`, lists of
//! changes in `snapshots/change_list.rs`, blocks and revocations in `snapshots/revocation_list.rs`, the speed in `snapshots/paced.rs`.

mod change_list;
mod files;
mod paced;
mod revocation_list;

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fanwire_broker::{
    ChangeMarks, ChangesSince, MemoryBroker, MemoryState, RestoreOptions, RevocationStore,
    Snapshot, SnapshotClock, SnapshotHead, SystemChance,
};
use fanwire_config::{Config, EngineKind};
use fanwire_fanout::unix_ms;
use fanwire_metrics::SnapshotReadings;
use fanwire_node::BrokerFactory;
use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

use self::change_list::{ChangeList, LateChange};
use self::files::{Files, ReadError};
use self::paced::Paced;
use self::revocation_list::RevocationList;
use crate::error::StartError;

/// The snapshots of a running server.
pub(crate) struct Snapshots {
    files: Files,
    interval: Duration,
    broker: Arc<MemoryBroker>,
    /// Locked while a snapshot is made.
    current: Mutex<Current>,
    /// A stop or another program waits for the snapshot that is made.
    is_hurried: AtomicBool,
    counters: SnapshotCounters,
    /// Connections that the planned stop before closed; 0 after a crash.
    connections_before: u64,
}

struct Current {
    generation: u64,
    /// `None` if there is no list: then there is no snapshot either.
    changes: Option<Arc<ChangeList>>,
    /// The snapshot of the planned stop was made.
    is_finished: bool,
}

/// Snapshots that are not made, because another program may take over.
pub(crate) struct PausedSnapshots<'a> {
    current: MutexGuard<'a, Current>,
}

#[derive(Default)]
struct SnapshotCounters {
    failures: AtomicU64,
    bytes: AtomicU64,
    took_ms: AtomicU64,
    /// Unix time of the newest one; 0 = there is none.
    saved_at_ms: AtomicU64,
}

/// The files and the state that a start has found, before there is a broker.
pub(crate) struct Opened {
    files: Files,
    interval: Duration,
    /// `None` begins with nothing.
    state: Option<MemoryState>,
    connections: u64,
    current: Current,
    history_bytes_max: usize,
    revocations: Option<Arc<dyn RevocationStore>>,
}

/// The broker that a node has made at its start.
pub(crate) struct MadeBroker {
    pub(crate) broker: Arc<MemoryBroker>,
    pub(crate) snapshots: Option<Arc<Snapshots>>,
}

impl PausedSnapshots<'_> {
    /// The other program has taken over, and makes the snapshots from now on.
    pub(crate) fn end(mut self) {
        self.current.is_finished = true;
    }
}

impl Opened {
    /// Locks the file and reads it, if one is configured. With the lock of another program the state comes from there. A file that cannot be used is a line in the log, and the server starts without
    /// it.
    ///
    /// # Errors
    /// Another server has the file.
    pub(crate) fn open(config: &Config, lock: Option<File>) -> Result<Option<Self>, StartError> {
        let options = &config.engine.memory;
        if options.snapshot_path.is_empty() || config.engine.kind != EngineKind::Memory {
            return Ok(None);
        }
        let path = options.snapshot_path.clone();
        let is_taken_over = lock.is_some();
        let files = match Files::lock(&path, lock) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(StartError::SnapshotInUse { path });
            }
            Err(error) => {
                log_failure(&path, &error, "this server keeps nothing over a restart");
                return Ok(None);
            }
        };
        let SavedState { generation, state, connections } =
            if is_taken_over { SavedState::default() } else { restore(&files, config) };
        Ok(Some(Self {
            current: begin(&files, generation),
            revocations: open_revocations(&files),
            files,
            interval: options.snapshot_interval,
            state,
            connections,
            history_bytes_max: config.node_options().channel.history_memory_max,
        }))
    }

    /// The list of blocks and revocations; `None` if they cannot be saved.
    pub(crate) fn revocations(&self) -> Option<Arc<dyn RevocationStore>> {
        self.revocations.clone()
    }

    /// A function that makes the broker, and gives it and its snapshots to `made`.
    pub(crate) fn factory(self, made: Arc<Mutex<Option<MadeBroker>>>) -> BrokerFactory {
        Box::new(move |deliver| {
            let broker = Arc::new(match self.state {
                Some(state) => MemoryBroker::with_state(deliver, self.history_bytes_max, state),
                None => MemoryBroker::new(deliver, self.history_bytes_max),
            });
            if let Some(changes) = &self.current.changes {
                let marks: Arc<dyn ChangeMarks> = changes.clone();
                broker.mark_changes(&marks);
            }
            let snapshots = Some(Arc::new(Snapshots {
                files: self.files,
                interval: self.interval,
                broker: broker.clone(),
                current: Mutex::new(self.current),
                is_hurried: AtomicBool::new(false),
                counters: SnapshotCounters::default(),
                connections_before: self.connections,
            }));
            *made.lock() = Some(MadeBroker { broker: broker.clone(), snapshots });
            broker
        })
    }
}

fn open_revocations(files: &Files) -> Option<Arc<dyn RevocationStore>> {
    let path = files.revocations();
    match RevocationList::open(path.clone(), unix_ms() / 1000) {
        Ok(list) => Some(Arc::new(list)),
        Err(error) => {
            let path = path.display().to_string();
            log_failure(&path, &error, "a restart forgets blocks and revocations");
            None
        }
    }
}

/// The snapshot that a start has found.
#[derive(Default)]
struct SavedState {
    /// 0 = none.
    generation: u64,
    /// `None` if it cannot be used.
    state: Option<MemoryState>,
    connections: u64,
}

/// Reads the snapshot. One that is spoiled gets another name.
fn restore(files: &Files, config: &Config) -> SavedState {
    let snapshot = match files.read() {
        Ok(Some(snapshot)) => snapshot,
        Ok(None) => return SavedState::default(),
        Err(error) => {
            keep_aside(files, &error);
            return SavedState::default();
        }
    };
    let generation = snapshot.generation();
    let Some(changes) = changes_since(files, &snapshot) else {
        return SavedState { generation, ..SavedState::default() };
    };
    let is_planned = changes == ChangesSince::None;
    let connections = if is_planned { snapshot.connections() } else { 0 };
    let durable = &config.durable_streams;
    let streams = format!("{}{}", durable.namespace, config.channel.namespace_boundary);
    let options = RestoreOptions {
        changes: &changes,
        clock: SnapshotClock { now: Instant::now(), unix_ms: unix_ms() },
        // The table of streams, with their types and producers, is not in the file.
        is_left_out: &|channel| durable.enabled && channel.starts_with(&streams),
    };
    match snapshot.restore(&options, &SystemChance) {
        Ok(state) => {
            let after = if is_planned { "a planned stop" } else { "a crash" };
            let path = files.path();
            tracing::info!(?path, generation, after, "histories go on from the snapshot");
            SavedState { generation, state: Some(state), connections }
        }
        Err(error) => {
            keep_aside(files, &ReadError::Snapshot(error));
            SavedState::default()
        }
    }
}

/// The changes after a snapshot; `None` if they are not known.
fn changes_since(files: &Files, snapshot: &Snapshot) -> Option<ChangesSince> {
    let generations = files.change_lists().unwrap_or_default().into_iter();
    let lists = generations.map(|generation| (generation, files.read_changes(generation)));
    let changes = snapshot.changes_since(lists);
    if changes.is_none() {
        let path = files.path();
        tracing::warn!(
            ?path,
            "the machine was started again, or a list of changes is missing: it is not known what changed after the snapshot, so no \
             history is taken from it"
        );
    }
    changes
}

/// The list of changes of a process that starts. Without one, on a full disk, the snapshot is removed, and the next one is tried later.
fn begin(files: &Files, found: u64) -> Current {
    let newest = files.change_lists().unwrap_or_default().into_iter().max().unwrap_or(0);
    let generation = newest.max(found) + 1;
    let changes = files.begin_changes(generation).and_then(|changes| {
        // On the disk before the first client: it says that the snapshot is no longer the newest state.
        files.sync_folder()?;
        Ok(changes)
    });
    if let Err(error) = &changes {
        files.forget();
        let path = files.path().display().to_string();
        log_failure(&path, error, "there is no file until a snapshot can be written");
    }
    Current { generation, changes: changes.ok(), is_finished: false }
}

fn keep_aside(files: &Files, error: &ReadError) {
    let path = files.path();
    let kept = files.keep_aside();
    tracing::error!(
        ?path,
        %error,
        kept_as = ?kept,
        "engine.memory.snapshot_path: the snapshot cannot be used, so there are no histories"
    );
}

fn log_failure(path: &str, error: &io::Error, effect: &'static str) {
    tracing::error!(path, %error, effect, "engine.memory.snapshot_path cannot be used");
}

impl Snapshots {
    /// Makes snapshots while something changes, until the task is aborted.
    pub(crate) fn run(self: &Arc<Self>) -> JoinHandle<()> {
        let snapshots = self.clone();
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(snapshots.interval);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            ticks.tick().await;
            loop {
                ticks.tick().await;
                let snapshots = snapshots.clone();
                let _ = tokio::task::spawn_blocking(move || snapshots.save_if_changed()).await;
            }
        })
    }

    fn save_if_changed(&self) {
        let mut current = self.current.lock();
        let has_changes = current.changes.as_ref().is_none_or(|changes| changes.has_changes());
        if has_changes && !current.is_finished {
            let saved = self.save_next(&mut current);
            self.log(saved);
        }
    }

    /// Makes a snapshot while the server runs.
    fn save_next(&self, current: &mut Current) -> io::Result<()> {
        current.generation += 1;
        let changes = self.files.begin_changes(current.generation)?;
        let marks: Arc<dyn ChangeMarks> = changes.clone();
        current.changes = Some(changes.clone());
        self.save(self.head(current.generation, None), &marks)?;
        if changes.is_broken() {
            self.files.forget();
            return Err(io::Error::other("what changed after it cannot be written"));
        }
        self.files.remove_changes_before(current.generation);
        Ok(())
    }

    /// The lock of the file, for a program that takes over.
    pub(crate) fn lock(&self) -> BorrowedFd<'_> {
        self.files.lock_file()
    }

    /// Makes no snapshot while the result exists.
    pub(crate) fn pause(&self) -> PausedSnapshots<'_> {
        PausedSnapshots { current: self.hurried() }
    }

    /// The lock, after the snapshot that is made, which sleeps no more.
    fn hurried(&self) -> MutexGuard<'_, Current> {
        self.is_hurried.store(true, Relaxed);
        let current = self.current.lock();
        self.is_hurried.store(false, Relaxed);
        current
    }

    /// Makes the last snapshot, after the last delivery, of a server that had so many connections. With it every position goes on. Another
    /// server can then take the file, also while tasks of this one still run down and read the metrics.
    pub(crate) fn finish(&self, connections: u64) {
        let mut current = self.hurried();
        if current.is_finished {
            return; // the file belongs to the program that took over
        }
        self.is_hurried.store(true, Relaxed);
        let mut saved = Ok(());
        for _ in 0..FINISHES_MAX {
            current.generation += 1;
            let late = Arc::new(LateChange::new(self.files.path()));
            let marks: Arc<dyn ChangeMarks> = late.clone();
            saved = self.save(self.head(current.generation, Some(connections)), &marks);
            if saved.is_err() || !late.remove_if_late() {
                break;
            }
            saved = Err(io::Error::other("something changed after it"));
        }
        current.is_finished = true;
        if saved.is_ok() {
            self.files.remove_changes_before(u64::MAX);
            saved = self.files.sync_folder();
        }
        self.log(saved);
        self.files.unlock();
    }

    /// The head of a snapshot; of the last one with the connections that the stop closes.
    fn head(&self, generation: u64, closed: Option<u64>) -> SnapshotHead {
        let clock = SnapshotClock { now: Instant::now(), unix_ms: unix_ms() };
        let connections = closed.unwrap_or(0);
        SnapshotHead { generation, is_planned: closed.is_some(), clock, connections }
    }

    fn save(&self, head: SnapshotHead, marks: &Arc<dyn ChangeMarks>) -> io::Result<()> {
        let started = Instant::now();
        let bytes = self.files.write(|out| {
            let mut out = Paced::new(out, &self.is_hurried);
            let totals = self.broker.save(head, Some(marks), &mut out)?;
            Ok(totals.bytes)
        })?;
        self.counters.bytes.store(bytes, Relaxed);
        self.counters.took_ms.store(started.elapsed().as_millis() as u64, Relaxed);
        self.counters.saved_at_ms.store(head.clock.unix_ms, Relaxed);
        Ok(())
    }

    fn log(&self, saved: io::Result<()>) {
        let SnapshotCounters { failures, bytes, took_ms, .. } = &self.counters;
        let path = self.files.path();
        match saved {
            Ok(()) => {
                let bytes = bytes.load(Relaxed);
                tracing::debug!(?path, bytes, took_ms = took_ms.load(Relaxed), "snapshot written");
            }
            Err(error) => {
                failures.fetch_add(1, Relaxed);
                tracing::error!(?path, %error, "a snapshot could not be written; the one before it stays");
            }
        }
    }

    /// The connections that the planned stop before this start closed; 0 after a crash, and without a snapshot.
    pub(crate) fn connections_before(&self) -> u64 {
        self.connections_before
    }

    /// The readings that the metrics show.
    pub(crate) fn readings(&self) -> SnapshotReadings {
        let SnapshotCounters { failures, bytes, took_ms, saved_at_ms } = &self.counters;
        let saved_at_ms = saved_at_ms.load(Relaxed);
        let age_ms = if saved_at_ms == 0 { 0 } else { unix_ms().saturating_sub(saved_at_ms) };
        SnapshotReadings {
            failures: failures.load(Relaxed),
            bytes: bytes.load(Relaxed),
            took: Duration::from_millis(took_ms.load(Relaxed)),
            age: Duration::from_millis(age_ms),
        }
    }
}

/// How often the last snapshot is made again because something changed after it.
const FINISHES_MAX: u32 = 3;

#[cfg(test)]
mod tests;
