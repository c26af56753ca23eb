//! Structured logs: lines for people on a terminal, JSON lines everywhere else.
//! In: `log.level` and `log.file` → out: a global tracing subscriber, and the file to open again when it was rotated.
//! Uses tracing-subscriber. Never: what is logged, signals.
//! Format and destination are changed here.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use fanwire::config::LogOptions;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging for the whole process; once. Returns the file that lines go to, if it is one.
pub(crate) fn start(options: &LogOptions) -> Result<Option<Arc<LogFile>>> {
    let logs = tracing_subscriber::fmt().with_max_level(level(&options.level));
    // It would speak of lines that cannot be written on stderr, and panic where that cannot be written to either.
    let logs = logs.log_internal_errors(false);
    if !options.file.is_empty() {
        let file = Arc::new(LogFile::open(&options.file)?);
        logs.json().with_writer(file.clone()).init();
        return Ok(Some(file));
    }
    if std::io::stderr().is_terminal() {
        logs.with_writer(std::io::stderr).with_target(false).init();
    } else {
        logs.json().with_writer(std::io::stderr).init();
    }
    Ok(None)
}

/// `log.file`; a line that it does not take, as on a full disk, goes to stderr.
pub(crate) struct LogFile {
    path: String,
    file: Mutex<File>,
}

impl LogFile {
    fn open(path: &str) -> Result<Self> {
        Ok(Self { path: path.to_owned(), file: Mutex::new(append(path)?) })
    }

    /// Opens the path again: a tool like logrotate has renamed the file that was open.
    ///
    /// # Errors
    /// The path cannot be opened; lines still go to the file that was open.
    pub(crate) fn reopen(&self) -> Result<()> {
        let file = append(&self.path)?;
        *self.lock() = file;
        Ok(())
    }

    /// A thread that panicked while it wrote a line leaves the file usable.
    fn lock(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for &LogFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.lock().write(bytes)
    }

    fn write_all(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.lock().write_all(line).or_else(|_| std::io::stderr().write_all(line))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.lock().flush()
    }
}

fn append(path: &str) -> Result<File> {
    let file = File::options().create(true).append(true).open(path);
    file.with_context(|| format!("log.file is {path:?}, expected the path of a file to append to"))
}

/// `fatal` is Centrifugo's; nothing here is worse than an error.
fn level(name: &str) -> LevelFilter {
    match name {
        "none" => LevelFilter::OFF,
        "fatal" => LevelFilter::ERROR,
        name => name.parse().unwrap_or(LevelFilter::INFO),
    }
}
