//! The files of a snapshot: `<path>`, `<path>.tmp` while it is written, `<path>.lock`, `<path>.revocations`, and a list of changes for each
//! generation.
//! In: a path → out: the locked file, what is in it, and a new one in its place.
//! Uses `flock`, syncs and a rename, so a file is whole or the one before it. Never: the content.
//! Changed here: names, and in which order they are written and removed.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, BufWriter, ErrorKind, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanwire_broker::{Bucket, Snapshot, SnapshotError};

use super::change_list::ChangeList;

/// The files of one server.
pub(super) struct Files {
    path: PathBuf,
    folder: PathBuf,
    /// Locked until the last snapshot is made, or until the process ends, and the one that takes over.
    lock: File,
}

/// Why a snapshot was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("{0}")]
    Open(io::Error),
    #[error("{0}")]
    Snapshot(SnapshotError),
}

impl Files {
    /// Takes the lock of a file that is there or not; `lock` if another program has passed it on.
    ///
    /// # Errors
    /// `WouldBlock` when another process has it; those of the folder.
    pub(super) fn lock(path: &str, lock: Option<File>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let folder = path.parent().ok_or(ErrorKind::InvalidInput)?.to_owned();
        if let Some(lock) = lock {
            return Ok(Self { path, folder, lock });
        }
        let mut options = File::options();
        options.create(true).write(true).truncate(false).mode(0o600);
        let lock = options.open(with_suffix(&path, "lock"))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })?;
        Ok(Self { path, folder, lock })
    }

    pub(super) fn lock_file(&self) -> BorrowedFd<'_> {
        self.lock.as_fd()
    }

    /// Lets another server take the file. This one writes nothing any more.
    pub(super) fn unlock(&self) {
        let unlocked = self.lock.unlock();
        debug_assert!(unlocked.is_ok(), "the file was locked");
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The snapshot; `None` if there is none.
    pub(super) fn read(&self) -> Result<Option<Snapshot>, ReadError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ReadError::Open(error)),
        };
        let snapshot = Snapshot::read(&mut BufReader::with_capacity(BUFFER_BYTES, file));
        snapshot.map(Some).map_err(ReadError::Snapshot)
    }

    /// Gives the snapshot another name, which it returns.
    pub(super) fn keep_aside(&self) -> Option<PathBuf> {
        let kept = with_suffix(&self.path, "unusable");
        fs::rename(&self.path, &kept).ok().map(|()| kept)
    }

    /// Removes the snapshot: what changes after it is in no list.
    pub(super) fn forget(&self) {
        let _missing = fs::remove_file(&self.path);
    }

    /// Puts what `write` writes into the place of the snapshot. Returns what `write` returns.
    pub(super) fn write(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<u64>,
    ) -> io::Result<u64> {
        let written = replace(&self.path, write)?;
        self.sync_folder()?;
        Ok(written)
    }

    /// Path of the list of blocks and revocations.
    pub(super) fn revocations(&self) -> PathBuf {
        with_suffix(&self.path, "revocations")
    }

    pub(super) fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }

    /// The generations of all lists of changes.
    pub(super) fn change_lists(&self) -> io::Result<Vec<u64>> {
        let name = with_suffix(&self.path, "changes.");
        let prefix = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut generations = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let generation = name.to_str().and_then(|name| name.strip_prefix(&prefix));
            generations.extend(generation.and_then(|generation| generation.parse::<u64>().ok()));
        }
        Ok(generations)
    }

    pub(super) fn begin_changes(&self, generation: u64) -> io::Result<Arc<ChangeList>> {
        ChangeList::create(&self.changes(generation), &self.path).map(Arc::new)
    }

    /// See [`ChangeList::read`].
    pub(super) fn read_changes(&self, generation: u64) -> Option<Vec<Bucket>> {
        ChangeList::read(&self.changes(generation))
    }

    pub(super) fn remove_changes_before(&self, generation: u64) {
        let lists = self.change_lists().unwrap_or_default();
        for old in lists.into_iter().filter(|list| *list < generation) {
            let _missing = fs::remove_file(self.changes(old));
        }
    }

    fn changes(&self, generation: u64) -> PathBuf {
        with_suffix(&self.path, &format!("changes.{generation}"))
    }
}

/// Puts what `write` writes into the place of a file, which is whole or the one before it. Returns what `write` returns.
pub(super) fn replace<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> io::Result<T> {
    let new = with_suffix(path, "tmp");
    let written = write_new(&new, write).and_then(|written| {
        fs::rename(&new, path)?;
        Ok(written)
    });
    if written.is_err() {
        // A full disk has room for other files again.
        let _missing = fs::remove_file(&new);
    }
    written
}

fn write_new<T>(new: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    let mut options = File::options();
    let file = options.create(true).write(true).truncate(true).mode(0o600).open(new)?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, SyncedFile { file, unsynced: 0 });
    let written = write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.file.sync_all()?;
    Ok(written)
}

/// A file that goes to the disk in small parts. The system would write a large one at once at its end, on a core that a shard needs.
struct SyncedFile {
    file: File,
    unsynced: usize,
}

impl Write for SyncedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written;
        if self.unsynced >= UNSYNCED_MAX {
            self.file.sync_data()?;
            self.unsynced = 0;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

const BUFFER_BYTES: usize = 64 << 10;
/// Bytes of a new file that are not on the disk yet.
const UNSYNCED_MAX: usize = 4 << 20;
