//! The file with the process id (`pid_file`).
//! In: a path → out: a file that holds the id while the server runs, or why it cannot.
//! Uses the file system. Never: takes a file away that it has not written, or that another process has written since.
//! When it is opened and written is changed in `serve`.

use std::fs::{File, OpenOptions, read, remove_file};
use std::io::{self, ErrorKind, Seek as _, Write as _};
use std::path::Path;
use std::process;

use anyhow::{Context as _, Result};

/// The file, which is gone with this value once it was written.
pub(super) struct PidFile<'a> {
    path: &'a str,
    file: File,
    is_ours: bool,
}

impl<'a> PidFile<'a> {
    /// Opens the file at a path; `None` without one. A file that is not there yet is written at once, so that a full disk
    /// shows. One that is there, perhaps of a server that still runs, is left as it is.
    ///
    /// # Errors
    /// It cannot be opened or written; names the key and the remedy.
    pub(super) fn open(path: &'a str) -> Result<Option<Self>> {
        if path.is_empty() {
            return Ok(None);
        }
        let (file, is_new) = match File::create_new(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).open(path), false)
            }
            made => (made, true),
        };
        let file = file.with_context(|| cannot_be_written(path))?;
        let mut opened = Self { path, file, is_ours: is_new };
        if is_new {
            opened.write()?;
        }
        Ok(Some(opened))
    }

    /// Puts the id in it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn write(&mut self) -> Result<()> {
        // A device is none of ours, whoever names one, and has no length.
        self.is_ours = self.file.metadata().is_ok_and(|found| found.is_file());
        let written = match self.is_ours {
            true => self.write_anew(),
            false => self.file.write_all(text().as_bytes()),
        };
        written.with_context(|| cannot_be_written(self.path))
    }

    fn write_anew(&mut self) -> io::Result<()> {
        // The server that it was of has ended since it was opened, and taken it away.
        if !Path::new(self.path).exists() {
            self.file = File::create(self.path)?;
        }
        self.file.rewind()?;
        self.file.write_all(text().as_bytes())?;
        self.file.set_len(text().len() as u64)
    }

    /// Holds it what this process wrote, or as much of it as a full disk took? The next server may have begun while this
    /// one told its clients to go.
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
        "pid_file = {path:?} cannot be written: name a file in a folder of this user, on a disk that is not full"
    )
}

#[cfg(test)]
mod tests;
