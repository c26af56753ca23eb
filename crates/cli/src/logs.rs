//! Structured logs: text lines on a terminal, JSON lines otherwise.
//! In: `log.level`, `log.file` and `log.format` → out: a global tracing subscriber, whose file can be reopened and whose level can
//! be changed.
//! Uses tracing-subscriber. Never: log messages, signals.
//! Changed here: format and destination.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use fanwire_config::LogOptions;
use fanwire_node::DEBUG_FOR_TARGET;
use json_lines::JsonLines;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

mod json_lines;

/// The running logs, to change while the process runs.
pub(crate) struct Logs {
    /// `None`: lines go to stderr.
    file: Option<Arc<LogFile>>,
    level: reload::Handle<Targets, Registry>,
}

/// Starts logging for the whole process; call it once.
pub(crate) fn start(options: &LogOptions) -> Result<Logs> {
    let (filter, level) = reload::Layer::new(filter(&options.level));
    let registry = tracing_subscriber::registry().with(filter);
    let is_terminal = options.file.is_empty() && std::io::stderr().is_terminal();
    // tracing-subscriber would report write errors on stderr, and panic if that fails too.
    let layer = tracing_subscriber::fmt::layer()
        .log_internal_errors(false)
        .with_target(false)
        .with_ansi(is_terminal);
    let is_text = match options.format.as_str() {
        "text" => true,
        "json" => false,
        _ => is_terminal,
    };
    if options.file.is_empty() {
        let layer = layer.with_writer(std::io::stderr);
        if is_text {
            registry.with(layer).init();
        } else {
            registry.with(layer.event_format(JsonLines)).init();
        }
        return Ok(Logs { file: None, level });
    }
    let file = Arc::new(LogFile::open(&options.file)?);
    let layer = layer.with_writer(file.clone());
    if is_text {
        registry.with(layer).init();
    } else {
        registry.with(layer.event_format(JsonLines)).init();
    }
    Ok(Logs { file: Some(file), level })
}

impl Logs {
    /// Opens `log.file` again, if one is configured, and logs the result.
    pub(crate) fn reopen(&self) {
        let Some(file) = &self.file else { return };
        match file.reopen() {
            Ok(()) => tracing::info!("log.file was reopened"),
            Err(error) => {
                tracing::error!("log.file cannot be reopened, the old file stays in use: {error:#}")
            }
        }
    }

    /// Writes lines of this `log.level` and above from now on.
    pub(crate) fn set_level(&self, name: &str) -> Result<()> {
        self.level.modify(|current| *current = filter(name)).context("log.level cannot be changed")
    }
}

/// The file `log.file`. A line that cannot be written to it, for example on a full disk, goes to stderr.
struct LogFile {
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
    fn reopen(&self) -> Result<()> {
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

/// Lines of a level and above, and those of `log.debug_for` always.
fn filter(name: &str) -> Targets {
    Targets::new().with_default(level(name)).with_target(DEBUG_FOR_TARGET, LevelFilter::DEBUG)
}

/// Maps a level of Centrifugo; `fatal` has no equivalent and means `error`.
fn level(name: &str) -> LevelFilter {
    match name {
        "none" => LevelFilter::OFF,
        "fatal" => LevelFilter::ERROR,
        name => name.parse().unwrap_or(LevelFilter::INFO),
    }
}
