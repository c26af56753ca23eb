//! The file with the process id (`pid_file`).
//! In: a path → out: a file that contains the id while the server runs, or an error.
//! Uses the file system. Never: removes a file that this process has not written, or that another process has overwritten.
//! `serve` decides when it is opened and written.

use std::fs::{File, OpenOptions, read, remove_file};
use std::io::{self, ErrorKind, Seek as _, Write as _};
use std::path::Path;
use std::process;

use anyhow::{Context as _, Result};

/// The file. Dropping this value removes it if this process wrote it.
pub(super) struct PidFile<'a> {
    path: &'a str,
    file: File,
    is_ours: bool,
}

impl<'a> PidFile<'a> {
    /// Opens the file at `path`; `None` for an empty path. A new file is written at once, to find a full disk. An existing file,
    /// which may belong to a running server, is not changed.
    ///
    /// # Errors
    /// The file cannot be opened or written; the error names the key and the remedy.
    pub(super) fn open(path: &'a str) -> Result<Option<Self>> {
        if path.is_empty() {
            return Ok(None);
        }
        let (file, is_new) = match File::create_new(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).open(path), false)
            }
            created => (created, true),
        };
        let file = file.with_context(|| cannot_be_written(path))?;
        let mut opened = Self { path, file, is_ours: is_new };
        if is_new {
            opened.write()?;
        }
        Ok(Some(opened))
    }

    /// Writes the id.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub(super) fn write(&mut self) -> Result<()> {
        // A device is never removed, and its length cannot be set.
        self.is_ours = self.file.metadata().is_ok_and(|found| found.is_file());
        let written =
            if self.is_ours { self.overwrite() } else { self.file.write_all(text().as_bytes()) };
        written.with_context(|| cannot_be_written(self.path))
    }

    /// Leaves the file to the program that has taken over, which writes its own id.
    pub(super) fn leave(&mut self) {
        self.is_ours = false;
    }

    fn overwrite(&mut self) -> io::Result<()> {
        // The previous server has ended after `open` and removed its file.
        if !Path::new(self.path).exists() {
            self.file = File::create(self.path)?;
        }
        self.file.rewind()?;
        self.file.write_all(text().as_bytes())?;
        self.file.set_len(text().len() as u64)
    }

    /// Whether the file still has the id of this process, or the part of it that fitted on a full disk. The next server may
    /// have started while this one disconnected its clients.
    fn is_still_ours(&self) -> bool {
        self.is_ours && read(self.path).is_ok_and(|found| text().as_bytes().starts_with(&found))
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        if self.is_still_ours() {
            let _ = remove_file(self.path);
        }
    }
}

fn text() -> String {
    format!("{}\n", process::id())
}

fn cannot_be_written(path: &str) -> String {
    format!(
        "pid_file = {path:?} cannot be written: use a file in a writable folder, on a disk that is not full"
    )
}

#[cfg(test)]
mod tests;
