//! The log of all servers of this process.
//! In: lines that shards write on their own threads → out: the line about one channel.
//! Uses tracing-subscriber. Never: the output of the tests.
//! Changed here: how a line is found.

use std::{
    io::{self, Write},
    sync::Once,
};

use parking_lot::Mutex;

/// Keeps lines from now on. A process has one log, so lines of other tests are among them.
pub(crate) fn keep() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| tracing_subscriber::fmt().with_ansi(false).with_writer(|| Log).init());
}

/// The only line about `channel`, which no other test has: each field with its name.
///
/// # Panics
/// If there is none or more than one.
pub(crate) fn line_about(channel: &str) -> String {
    let field = format!(" channel={channel:?}");
    let log = TEXT.lock();
    let text = String::from_utf8_lossy(&log);
    let lines: Vec<_> = text.lines().filter(|line| line.contains(&field)).collect();
    let [line] = lines[..] else { panic!("{channel}: {lines:?}") };
    line.to_owned()
}

static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        TEXT.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
