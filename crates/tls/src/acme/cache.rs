//! The files of `cache_dir`: the account's key, and a certificate with its key for each name.
//! In: the folder, texts → out: the texts of an earlier run; files that no other user can read.
//! Uses std's files; blocks. Never: sockets, the content of a file.
//! Changed here: names of files, how they are written. What is in them is read by `certificate` and `account`.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// A folder for one directory URL, because certificates of a staging environment must not be shown after it.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// `None`: nothing is kept.
    folder: Option<PathBuf>,
}

impl Cache {
    /// Makes the folder and checks that it can be written to.
    ///
    /// # Errors
    /// The system's; then the folder cannot be used.
    pub(super) fn open(cache_dir: &str, directory_url: &str) -> io::Result<Self> {
        if cache_dir.is_empty() {
            return Ok(Self { folder: None });
        }
        let folder = Path::new(cache_dir).join(folder_name(directory_url));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let probe = temporary(&folder, "probe");
        open_new(&probe)?;
        fs::remove_file(&probe)?;
        Ok(Self { folder: Some(folder) })
    }

    /// Whether what is stored can be read again.
    pub(super) fn is_kept(&self) -> bool {
        self.folder.is_some()
    }

    /// The account; `None` if there is none.
    pub(super) fn account(&self) -> io::Result<Option<String>> {
        self.read(ACCOUNT)
    }

    pub(super) fn store_account(&self, text: &str) -> io::Result<()> {
        self.write(ACCOUNT, text)
    }

    pub(super) fn remove_account(&self) -> io::Result<()> {
        match &self.folder {
            Some(folder) => fs::remove_file(folder.join(ACCOUNT)),
            None => Ok(()),
        }
    }

    /// PEM of key and chain; `None` if there is none. The name is that of a host, so it is a name of a file, too.
    pub(super) fn certificate(&self, name: &str) -> io::Result<Option<String>> {
        self.read(&certificate_file(name))
    }

    pub(super) fn store_certificate(&self, name: &str, pem: &str) -> io::Result<()> {
        self.write(&certificate_file(name), pem)
    }

    fn read(&self, file: &str) -> io::Result<Option<String>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        match fs::read_to_string(folder.join(file)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The file has either its old or its new content, also after a crash.
    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = temporary(folder, file);
        let written = open_new(&path).and_then(|mut new| {
            new.write_all(text.as_bytes())?;
            new.sync_all()?;
            fs::rename(&path, folder.join(file))?;
            File::open(folder)?.sync_all()
        });
        if written.is_err() {
            let _ = fs::remove_file(&path);
        }
        written
    }
}

/// A file for this user alone, in place of one that a crash left there.
fn open_new(path: &Path) -> io::Result<File> {
    let _ = fs::remove_file(path);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Two processes may use a folder, for example while one replaces the other.
fn temporary(folder: &Path, file: &str) -> PathBuf {
    folder.join(format!(".{file}.{}", std::process::id()))
}

fn certificate_file(name: &str) -> String {
    format!("{name}.pem")
}

/// `acme-v02.api.letsencrypt.org-directory` for Let's Encrypt.
fn folder_name(directory_url: &str) -> String {
    let rest = directory_url.split_once("://").map_or(directory_url, |(_, rest)| rest);
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    rest.trim_start_matches('.').chars().map(safe).collect()
}

const ACCOUNT: &str = "account.json";

#[cfg(test)]
mod tests;
