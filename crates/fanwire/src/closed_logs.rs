//! Files with the logs of connections that ended (`recorder.path`), for `fanwire log`.
//! In: logs of all shards, in a queue with a limit → out: files of a folder, `recorder.disk_max` bytes at most.
//! Uses a thread of its own, which alone writes. Never: waits in a shard; a log for which the queue has no room is dropped.
//! Changed here: when a file is full and what its name becomes. The format is in `fanwire_node::log_file`.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use fanwire_config::Config;
use fanwire_node::{KeepClosedLog, log_file};
use fanwire_telemetry::LogThrottle;

use crate::error::StartError;

/// The thread that writes logs.
pub(crate) struct ClosedLogWriter {
    /// An empty one ends the thread.
    queue: SyncSender<Vec<u8>>,
    /// Logs that are in no file.
    dropped: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl ClosedLogWriter {
    /// Starts the thread if `recorder.path` is set; before the first connection.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub(crate) fn start(config: &Config) -> Result<Option<Self>, StartError> {
        let path = config.recorder.path.clone();
        if path.is_empty() {
            return Ok(None);
        }
        let files = LogFiles::open(path.clone().into(), config.recorder.disk_max);
        let (queue, logs) = sync_channel(QUEUE_MAX);
        let dropped = Arc::<AtomicU64>::default();
        let count = dropped.clone();
        let thread = files
            .and_then(|files| {
                let thread = Builder::new().name("fanwire-recorder".to_owned());
                thread.spawn(move || write_all(&logs, files, &count))
            })
            .map_err(|source| StartError::Recorder { path, source })?;
        Ok(Some(Self { queue, dropped, thread }))
    }

    /// The function with which shards put logs into the queue.
    pub(crate) fn keep(&self) -> KeepClosedLog {
        let queue = self.queue.clone();
        let dropped = self.dropped.clone();
        Box::new(move |log| {
            if queue.try_send(log).is_err() {
                dropped.fetch_add(1, Relaxed);
            }
        })
    }

    /// Waits until all is written, but not for a disk that hangs.
    pub(crate) async fn stop(self) {
        let until = Instant::now() + STOP_TIMEOUT;
        while !self.thread.is_finished() && Instant::now() < until {
            // Tried again while the queue is full.
            let _ = self.queue.try_send(Vec::new());
            tokio::time::sleep(STOP_POLL).await;
        }
    }
}

/// Writes logs until an empty one, and logs how many are in no file.
fn write_all(logs: &Receiver<Vec<u8>>, mut files: LogFiles, dropped: &AtomicU64) {
    let throttle = LogThrottle::default();
    let mut reported = 0;
    let mut error = None;
    while let Ok(log) = logs.recv()
        && !log.is_empty()
    {
        if let Err(failure) = files.append(&log) {
            error = Some(failure);
            dropped.fetch_add(1, Relaxed);
        }
        let all = dropped.load(Relaxed);
        if all > reported && throttle.record("recorder", Instant::now()).is_some() {
            let cause = error.take().map_or("the disk is too slow".to_owned(), |it| it.to_string());
            let count = all - reported;
            tracing::warn!(count, cause, "logs of connections are not in recorder.path");
            reported = all;
        }
    }
}

/// The files of a folder.
struct LogFiles {
    folder: PathBuf,
    /// Most bytes of each file.
    bytes_max: u64,
    newest: File,
}

impl LogFiles {
    fn open(folder: PathBuf, disk_max: u64) -> io::Result<Self> {
        let bytes_max = disk_max / u64::from(log_file::FILES_MAX);
        Ok(Self { newest: open_newest(&folder)?, folder, bytes_max })
    }

    /// Appends a record. After an error the file may end with a part of it, which readers skip.
    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        if record.len() as u64 > self.bytes_max {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let state = self.newest.metadata()?;
        let is_full = state.len() + record.len() as u64 > self.bytes_max;
        if is_full {
            self.rename()?;
        }
        let is_removed = state.nlink() == 0;
        if is_full || is_removed {
            self.newest = open_newest(&self.folder)?;
        }
        self.newest.write_all(record)
    }

    /// Gives each file the next number, unless that was done and no new file could be made since. The oldest one is overwritten.
    fn rename(&self) -> io::Result<()> {
        if !self.folder.join(log_file::name(0)).exists() {
            return Ok(());
        }
        for number in (1..log_file::FILES_MAX).rev() {
            let [from, to] = [number - 1, number].map(|it| self.folder.join(log_file::name(it)));
            match fs::rename(from, to) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Opens the file that is written, or makes it and its folder.
fn open_newest(folder: &std::path::Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let newest = folder.join(log_file::name(0));
    File::options().create(true).append(true).mode(0o600).open(newest)
}

/// Logs that wait for the disk, some 0.6 KB each.
const QUEUE_MAX: usize = 8192;
const STOP_POLL: Duration = Duration::from_millis(10);
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests;
