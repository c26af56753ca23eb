//! A writer that leaves most of a core to the shards: after a short piece of work its thread sleeps.
//! In: another writer → out: the same bytes, later.
//! Uses: the clock and the sleep of its thread. Never: sleeps while a stripe is locked, because `broker` writes without a lock.
//! Changed here: the share of a core that a snapshot of a running server takes.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// A writer whose thread sleeps for [`RESTS`] times as long as it works.
pub(super) struct Paced<'a> {
    out: &'a mut dyn Write,
    /// A stop or another program waits for the end of the file: no more sleep.
    is_hurried: &'a AtomicBool,
    /// The end of the last sleep.
    working_since: Instant,
    /// Only tests have another one than that of the thread.
    sleep: fn(Duration),
}

impl<'a> Paced<'a> {
    pub(super) fn new(out: &'a mut dyn Write, is_hurried: &'a AtomicBool) -> Self {
        Self { out, is_hurried, working_since: Instant::now(), sleep: thread::sleep }
    }

    fn rest(&mut self) {
        let worked = self.working_since.elapsed();
        if worked >= WORK_MIN && !self.is_hurried.load(Relaxed) {
            (self.sleep)(rest_after(worked));
            self.working_since = Instant::now();
        }
    }
}

/// The sleep after so much work.
fn rest_after(worked: Duration) -> Duration {
    worked.saturating_mul(RESTS).min(REST_MAX)
}

impl Write for Paced<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.rest();
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A sleep is so many times as long as the work before it. Where others take the core, work lasts longer, and so does the sleep.
const RESTS: u32 = 4;
/// Less work is not worth a sleep.
const WORK_MIN: Duration = Duration::from_micros(200);
/// After a thread was stopped for long.
const REST_MAX: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_longer_than_the_work_before_it_and_bounded() {
        assert_eq!(rest_after(Duration::from_millis(1)), Duration::from_millis(4));
        assert_eq!(rest_after(Duration::from_secs(1)), REST_MAX);
        assert_eq!(rest_after(Duration::MAX), REST_MAX);
    }

    #[test]
    fn bytes_pass_and_a_writer_in_a_hurry_does_not_sleep() {
        let is_hurried = AtomicBool::new(false);
        let mut written = Vec::new();
        let mut paced = Paced { sleep: |_| {}, ..Paced::new(&mut written, &is_hurried) };
        // As if it had worked for long.
        let long_ago =
            Instant::now().checked_sub(Duration::from_secs(1)).expect("the machine runs");
        paced.working_since = long_ago;
        paced.write_all(b"slow").expect("memory takes all");
        assert!(paced.working_since > long_ago, "it has slept");
        is_hurried.store(true, Relaxed);
        paced.working_since = long_ago;
        paced.write_all(b", fast").expect("memory takes all");
        assert_eq!(paced.working_since, long_ago, "it has not slept");
        assert_eq!(written, b"slow, fast");
    }
}
