//! Folders of tests, which go with their values.
//! In: a word that tells tests apart → out: an empty folder; nothing of it is left when its value is dropped, also by a panic.
//! May use files below the folder of the system; never a folder that another value has.
//! Changed here: where tests write. A process that is killed leaves its folders, whose names have its id.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A new folder of one test.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder; its name has `name` in it, for a reader of a failed run.
    ///
    /// # Panics
    /// When the folder of the system is not writable.
    pub fn new(name: &str) -> Self {
        let number = NUMBER.fetch_add(1, Relaxed);
        let own = format!("fanwire-test-{}-{number}-{name}", std::process::id());
        let path = std::env::temp_dir().join(own);
        let _left_by_an_earlier_process = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).expect("the folder of the system is writable");
        Self(path)
    }

    /// The path as text.
    ///
    /// # Panics
    /// When the folder of the system has a name that is not UTF-8.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }

    /// The path of a file in it, as text.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path())
    }

    /// Writes a file and returns its path.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn write(&self, name: &str, content: &str) -> String {
        let file = self.file(name);
        std::fs::write(&file, content).expect("the folder of a test is writable");
        file
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed_by_the_test = std::fs::remove_dir_all(&self.0);
    }
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

#[cfg(test)]
mod tests;
