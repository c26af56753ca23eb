//! Structured logs: lines for people on a terminal, JSON lines everywhere else.
//! In: `log.level` and `log.file` → out: a global tracing subscriber.
//! Uses tracing-subscriber. Never: what is logged.
//! Format and destination are changed here.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;

use anyhow::{Context, Result};
use fanwire::config::LogOptions;
use tracing_subscriber::filter::LevelFilter;

/// Starts logging for the whole process; once.
pub(crate) fn start(options: &LogOptions) -> Result<()> {
    let logs = tracing_subscriber::fmt().with_max_level(level(&options.level));
    // It would speak of lines that cannot be written on stderr, and panic where that cannot be written to either.
    let logs = logs.log_internal_errors(false);
    if !options.file.is_empty() {
        let file = File::options().create(true).append(true).open(&options.file);
        let file = file.with_context(|| {
            format!("log.file is {:?}, expected the path of a file to append to", options.file)
        })?;
        logs.json().with_writer(Mutex::new(LogFile(file))).init();
    } else if std::io::stderr().is_terminal() {
        logs.with_writer(std::io::stderr).with_target(false).init();
    } else {
        logs.json().with_writer(std::io::stderr).init();
    }
    Ok(())
}

/// The file; a line that it does not take, as on a full disk, goes to stderr.
struct LogFile(File);

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_all(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.0.write_all(line).or_else(|_| std::io::stderr().write_all(line))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// `fatal` is Centrifugo's; nothing here is worse than an error.
fn level(name: &str) -> LevelFilter {
    match name {
        "none" => LevelFilter::OFF,
        "fatal" => LevelFilter::ERROR,
        name => name.parse().unwrap_or(LevelFilter::INFO),
    }
}
