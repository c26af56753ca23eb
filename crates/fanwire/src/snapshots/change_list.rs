//! The list of what changed after a snapshot, as a file that outlives the process but not the machine.
//! In: changed buckets, one call each, under the lock of their stripe → out: two bytes of a file, written before the change is delivered.
//! Uses one `write` per bucket, without a sync. Never: decides what a change is.
//! Changed here: the form of the list. Its name is in `files.rs`.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use fanwire_broker::{Bucket, ChangeMarks};

/// The list of one generation.
pub(super) struct ChangeList {
    file: File,
    /// The file that is wrong without the list.
    snapshot: PathBuf,
    has_changes: AtomicBool,
    /// A change is missing in it.
    is_broken: AtomicBool,
}

impl ChangeList {
    /// Makes an empty list.
    pub(super) fn create(path: &Path, snapshot: &Path) -> io::Result<Self> {
        let mut file = File::options().create_new(true).append(true).mode(0o600).open(path)?;
        file.write_all(MAGIC)?;
        file.write_all(boot_id()?.as_bytes())?;
        file.sync_all()?;
        Ok(Self::over(file, snapshot))
    }

    pub(super) fn over(file: File, snapshot: &Path) -> Self {
        let snapshot = snapshot.to_owned();
        let [has_changes, is_broken] = [(); 2].map(|()| AtomicBool::new(false));
        Self { file, snapshot, has_changes, is_broken }
    }

    pub(super) fn has_changes(&self) -> bool {
        self.has_changes.load(SeqCst)
    }

    /// Whether a change could not be added. Then a snapshot that was put into its place since has to be removed as well.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(SeqCst)
    }

    /// The buckets of a list; `None` if it is not whole: it was written before the machine was started, or by another program.
    pub(super) fn read(path: &Path) -> Option<Vec<Bucket>> {
        let mut bytes = Vec::new();
        File::open(path).ok()?.read_to_end(&mut bytes).ok()?;
        let boot_id = boot_id().ok()?;
        let buckets = bytes.strip_prefix(MAGIC)?.strip_prefix(boot_id.as_bytes())?;
        let (pairs, rest) = buckets.as_chunks::<2>();
        let is_bucket = |[stripe, number]: &[u8; 2]| *stripe < 64 && *number < 64;
        if !rest.is_empty() || !pairs.iter().all(is_bucket) {
            return None;
        }
        Some(
            pairs
                .iter()
                .map(|[stripe, number]| Bucket { stripe: *stripe, number: *number })
                .collect(),
        )
    }
}

impl ChangeMarks for ChangeList {
    fn mark(&self, bucket: Bucket) {
        self.has_changes.store(true, SeqCst);
        let written = (&self.file).write_all(&[bucket.stripe, bucket.number]);
        if let Err(error) = written {
            self.is_broken.store(true, SeqCst);
            // Without its list the snapshot would hide what is lost. The next one is made with another list.
            let removed = fs::remove_file(&self.snapshot).is_ok();
            let path = &self.snapshot;
            tracing::error!(
                ?path,
                %error,
                removed,
                "the list of changes cannot be written, so the snapshot is removed"
            );
        }
    }
}

/// The effect of a change after the last snapshot: it removes the file.
pub(super) struct LateChange {
    snapshot: PathBuf,
    is_late: AtomicBool,
}

impl LateChange {
    pub(super) fn new(snapshot: &Path) -> Self {
        Self { snapshot: snapshot.to_owned(), is_late: AtomicBool::new(false) }
    }

    /// Removes a file that was put into its place after the change. Returns whether there was a change.
    pub(super) fn remove_if_late(&self) -> bool {
        let is_late = self.is_late.load(SeqCst);
        if is_late {
            let _missing = fs::remove_file(&self.snapshot);
        }
        is_late
    }
}

impl ChangeMarks for LateChange {
    fn mark(&self, _: Bucket) {
        self.is_late.store(true, SeqCst);
        self.remove_if_late();
    }
}

/// The name of the time since the machine was started: what was not synced before it may be lost.
fn boot_id() -> io::Result<String> {
    let id = fs::read_to_string(BOOT_ID).map_err(|error| {
        let reason =
            format!("{BOOT_ID}, which names the start of the machine, cannot be read: {error}");
        io::Error::new(error.kind(), reason)
    })?;
    Ok(id.trim().to_owned())
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

const MAGIC: &[u8] = b"FANWIRE changes 1\n";
