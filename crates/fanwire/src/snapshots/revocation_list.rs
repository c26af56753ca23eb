//! Blocks and revocations of the memory engine in a file next to the snapshot (`<path>.revocations`), saved before they are answered.
//! In: changes, one after the other → out: the entries at the start, answers after the disk has a change.
//! Uses one thread, which appends a line for each change and syncs once for all that wait. Never: sends events, because the one node of
//! the list makes each change before it stores it.
//! Changed here: the form of the file, and when it is written again. Its lock is that of the snapshot.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use fanwire_broker::{
    Answer, BrokerError, Epoch, Position, Promise, RevocationChange, RevocationCursor,
    RevocationKind, RevocationListener, RevocationPage, RevocationStore,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::files::replace;

/// The list of a running server.
pub(super) struct RevocationList {
    entries: Arc<Mutex<RevocationEntries>>,
    unsaved: Mutex<Sender<Unsaved>>,
    epoch: Epoch,
}

/// Blocks and revocations by subject.
#[derive(Debug, Default, PartialEq, Eq)]
struct RevocationEntries(HashMap<EntryKey, RevocationChange>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct EntryKey {
    kind: RevocationKind,
    subject: String,
    channel: Option<String>,
}

struct Unsaved {
    change: RevocationChange,
    promise: Promise<()>,
}

impl RevocationList {
    /// Reads the file, writes it again without what has ended, and starts the thread. A file that is spoiled gets another name.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(super) fn open(path: PathBuf, unix: u64) -> io::Result<Self> {
        let mut entries = match fs::read(&path) {
            Ok(bytes) => RevocationEntries::decoded(&bytes).unwrap_or_else(|| keep_aside(&path)),
            Err(error) if error.kind() == ErrorKind::NotFound => RevocationEntries::default(),
            Err(error) => return Err(error),
        };
        entries.0.retain(|_, change| change.expire_at == 0 || change.expire_at > unix);
        let entries = Arc::new(Mutex::new(entries));
        let mut writer = ListWriter { path, entries: entries.clone(), file: None, lines: 0 };
        writer.write_again()?;
        let (unsaved, received) = channel();
        let thread = std::thread::Builder::new().name("revocations".to_owned());
        thread.spawn(move || writer.run(&received))?;
        Ok(Self { entries, unsaved: Mutex::new(unsaved), epoch: Epoch::random() })
    }
}

fn keep_aside(path: &Path) -> RevocationEntries {
    let kept = path.with_added_extension("unusable");
    let kept_as = fs::rename(path, &kept).ok().map(|()| kept);
    tracing::error!(
        ?path,
        ?kept_as,
        "the file of blocks and revocations cannot be used, so there are none"
    );
    RevocationEntries::default()
}

impl RevocationStore for RevocationList {
    fn listen(&self, _: RevocationListener) {}

    fn change(&self, change: &RevocationChange, _: Instant) -> Answer<()> {
        let (promise, answer) = Answer::later();
        // A thread that has ended drops the promise, which is an error.
        let _ = self.unsaved.lock().send(Unsaved { change: change.clone(), promise });
        answer
    }

    fn page(&self, _: RevocationCursor) -> Answer<RevocationPage> {
        let position = Position { offset: 0, epoch: self.epoch };
        let entries = self.entries.lock().0.values().cloned().collect();
        Answer::now(Ok(RevocationPage { position, entries, next: None }))
    }
}

/// The thread that writes the file.
struct ListWriter {
    path: PathBuf,
    entries: Arc<Mutex<RevocationEntries>>,
    /// `None` if its end may be torn: then it is written again.
    file: Option<File>,
    lines: usize,
}

impl ListWriter {
    fn run(mut self, received: &Receiver<Unsaved>) {
        while let Ok(first) = received.recv() {
            let mut waiting = vec![first];
            waiting.extend(received.try_iter());
            let saved = self.save(&waiting);
            if let Err(error) = &saved {
                self.file = None;
                let path = &self.path;
                tracing::error!(?path, %error, "blocks and revocations cannot be saved: a restart forgets the last ones");
            }
            for Unsaved { promise, .. } in waiting {
                promise.keep(saved.as_ref().map(|_| ()).map_err(|_| BrokerError::Unavailable));
            }
        }
    }

    fn save(&mut self, waiting: &[Unsaved]) -> io::Result<()> {
        let mut entries = self.entries.lock();
        waiting.iter().for_each(|unsaved| entries.apply(unsaved.change.clone()));
        let has_many_old_lines = self.lines > 2 * entries.0.len() + OLD_LINES_MAX;
        drop(entries);
        if has_many_old_lines {
            self.file = None;
        }
        let Some(file) = &mut self.file else { return self.write_again() };
        let lines: String = waiting.iter().map(|unsaved| line(&unsaved.change)).collect();
        file.write_all(lines.as_bytes())?;
        file.sync_data()?;
        self.lines += waiting.len();
        Ok(())
    }

    /// Replaces the file by one with the entries alone.
    fn write_again(&mut self) -> io::Result<()> {
        let entries = self.entries.lock();
        let lines: String = entries.0.values().map(line).collect();
        let count = entries.0.len();
        drop(entries);
        replace(&self.path, |out| {
            out.write_all(MAGIC.as_bytes())?;
            out.write_all(lines.as_bytes())?;
            Ok(())
        })?;
        self.file = Some(File::options().append(true).open(&self.path)?);
        self.lines = count;
        Ok(())
    }
}

impl RevocationEntries {
    /// The entries of a file; `None` if it is spoiled. A last line that is torn belongs to a change that was not answered.
    fn decoded(bytes: &[u8]) -> Option<Self> {
        let mut entries = Self::default();
        let lines = bytes.strip_prefix(MAGIC.as_bytes())?;
        for text in lines.split_inclusive(|byte| *byte == b'\n') {
            match change(text) {
                Some(change) => entries.apply(change),
                None if text.ends_with(b"\n") => return None,
                None => {}
            }
        }
        Some(entries)
    }

    fn apply(&mut self, change: RevocationChange) {
        let is_removal = change.kind == RevocationKind::UnblockUser;
        let kind = if is_removal { RevocationKind::BlockUser } else { change.kind };
        let key =
            EntryKey { kind, subject: change.subject.clone(), channel: change.channel.clone() };
        if is_removal {
            self.0.remove(&key);
        } else if !self.0.get(&key).is_some_and(|entry| entry.covers(&change)) {
            self.0.insert(key, change);
        }
    }
}

/// A line: the checksum of the JSON after it, the JSON.
fn line(change: &RevocationChange) -> String {
    let RevocationChange { kind, subject, channel, expire_at, issued_before } = change;
    let name = KINDS.into_iter().find(|(_, known)| known == kind).map(|(name, _)| name);
    let json = json!({
        "kind": name, "subject": subject, "channel": channel, "expire_at": expire_at, "issued_before": issued_before,
    })
    .to_string();
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
}

/// The change of a line; `None` if it is spoiled.
fn change(text: &[u8]) -> Option<RevocationChange> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let (checksum, json) = text.split_once(' ')?;
    if checksum != format!("{:08x}", crc32fast::hash(json.as_bytes())) {
        return None;
    }
    let value: Value = serde_json::from_str(json).ok()?;
    let (_, kind) = KINDS.into_iter().find(|(name, _)| value["kind"] == **name)?;
    Some(RevocationChange {
        kind,
        subject: value["subject"].as_str()?.to_owned(),
        channel: value["channel"].as_str().map(str::to_owned),
        expire_at: value["expire_at"].as_u64()?,
        issued_before: value["issued_before"].as_u64()?,
    })
}

const KINDS: [(&str, RevocationKind); 4] = [
    ("block_user", RevocationKind::BlockUser),
    ("unblock_user", RevocationKind::UnblockUser),
    ("revoke_token", RevocationKind::RevokeToken),
    ("invalidate_tokens", RevocationKind::InvalidateTokens),
];

const MAGIC: &str = "FANWIRE revocations 1\n";

/// The file is written again when it has so many lines more than twice the entries.
const OLD_LINES_MAX: usize = 10_000;

#[cfg(test)]
mod tests;
