//! Structured logs: text lines on a terminal, JSON lines otherwise.
//! In: `log.level`, `log.file` and `log.format` → out: a global tracing subscriber, and the log file, which can be reopened after rotation.
//! Uses tracing-subscriber. Never: log messages, signals.
//! Format and destination are changed here.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use fanwire::config::LogOptions;
use json_lines::JsonLines;
use tracing_subscriber::filter::LevelFilter;

mod json_lines;

/// Starts logging for the whole process; call it once. Returns the log file, if one is configured.
pub(crate) fn start(options: &LogOptions) -> Result<Option<Arc<LogFile>>> {
    let logs = tracing_subscriber::fmt().with_max_level(level(&options.level));
    // tracing-subscriber would report write errors on stderr, and panic if that fails too.
    let logs = logs.log_internal_errors(false).with_target(false);
    let is_terminal = options.file.is_empty() && std::io::stderr().is_terminal();
    let is_text = match options.format.as_str() {
        "text" => true,
        "json" => false,
        _ => is_terminal,
    };
    let logs = logs.with_ansi(is_terminal);
    if options.file.is_empty() {
        let logs = logs.with_writer(std::io::stderr);
        if is_text {
            logs.init()
        } else {
            logs.event_format(JsonLines).init()
        }
        return Ok(None);
    }
    let file = Arc::new(LogFile::open(&options.file)?);
    let logs = logs.with_writer(file.clone());
    if is_text {
        logs.init()
    } else {
        logs.event_format(JsonLines).init()
    }
    Ok(Some(file))
}

/// The file `log.file`. A line that cannot be written to it, for example on a full disk, goes to stderr.
pub(crate) struct LogFile {
    path: String,
    file: Mutex<File>,
}

impl LogFile {
    fn open(path: &str) -> Result<Self> {
        Ok(Self { path: path.to_owned(), file: Mutex::new(append(path)?) })
    }

    /// Opens the path again, after a tool like logrotate has renamed the file.
    ///
    /// # Errors
    /// The path cannot be opened; lines still go to the old file.
    pub(crate) fn reopen(&self) -> Result<()> {
        let file = append(&self.path)?;
        *self.lock() = file;
        Ok(())
    }

    /// The file stays usable after a panic of a thread that wrote a line.
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

/// Maps a level of Centrifugo; `fatal` has no equivalent and means `error`.
fn level(name: &str) -> LevelFilter {
    match name {
        "none" => LevelFilter::OFF,
        "fatal" => LevelFilter::ERROR,
        name => name.parse().unwrap_or(LevelFilter::INFO),
    }
}
