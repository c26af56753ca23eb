//! The CPU profile: which functions the process runs, by the stack of the running thread each 10 ms of CPU time.
//! In: a start and an end → out: a file with samples and CPU time, by stack and thread.
//! Uses `sampler`, which exists only during a profile: at other times nothing runs. Never: waits.
//! Changed here: what becomes of the stacks. They are collected in `sampler`.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod modules;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod sampler;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "cpu/unsupported.rs"]
mod sampler;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::format::{ProfileBuilder, Quantity};
use sampler::Stacks;

/// A profile that is being taken. Dropping it ends it.
#[derive(Debug)]
pub struct Recording {
    started: Instant,
    unix_ns: i64,
}

/// The reason why a profile cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CpuProfileError {
    /// Another one is being taken, and a process has one timer.
    #[error("another CPU profile is being taken, try again when it ends")]
    Busy,
    /// The system refused something, or is not Linux on x86-64 or AArch64.
    #[error("a CPU profile cannot be taken here: {0}")]
    System(io::Error),
}

impl Recording {
    /// Starts to record all threads. Reads the unwind tables of the binary and its libraries, which takes some 10 ms.
    pub fn start() -> Result<Self, CpuProfileError> {
        if IS_RECORDING.swap(true, SeqCst) {
            return Err(CpuProfileError::Busy);
        }
        if let Err(error) = sampler::start(PERIOD_US) {
            IS_RECORDING.store(false, SeqCst);
            return Err(CpuProfileError::System(error));
        }
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = i64::try_from(unix.as_nanos()).unwrap_or(i64::MAX);
        Ok(Self { started: Instant::now(), unix_ns })
    }

    /// Ends the recording and returns the gzipped profile. Looks up names, which takes some 100 ms.
    pub fn finish(self) -> Vec<u8> {
        let duration_ns = i64::try_from(self.started.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let stacks = sampler::stop().unwrap_or_default();
        let samples = Quantity { name: "samples", unit: "count" };
        let cpu = Quantity { name: "cpu", unit: "nanoseconds" };
        let period_ns = PERIOD_US * 1000;
        let mut builder = ProfileBuilder::new(&[samples, cpu], cpu, period_ns);
        builder.set_time(self.unix_ns, duration_ns);
        if stacks.lost > 0 {
            builder.comment(&format!("{} samples were lost", stacks.lost));
        }
        let mut names = HashMap::new();
        for ((thread, stack), count) in counts(&stacks) {
            let name = names.entry(thread).or_insert_with(|| thread_name(thread));
            builder.sample(stack, vec![count, count.saturating_mul(period_ns)], Some(name));
        }
        builder.finish()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        sampler::stop();
        IS_RECORDING.store(false, SeqCst);
    }
}

/// Samples by thread and stack.
fn counts(stacks: &Stacks) -> BTreeMap<(u64, &[u64]), i64> {
    let mut counts = BTreeMap::new();
    let mut words = stacks.words();
    while let [thread, length, rest @ ..] = words {
        let (stack, next) = rest.split_at((*length as usize).min(rest.len()));
        *counts.entry((*thread, stack)).or_default() += 1;
        words = next;
    }
    counts
}

/// The name of a thread, or its number if it has ended.
fn thread_name(thread: u64) -> String {
    let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
    name.map_or_else(|_| thread.to_string(), |name| name.trim_end().to_owned())
}

static IS_RECORDING: AtomicBool = AtomicBool::new(false);

/// CPU time of the process between two samples, in µs: 100 samples per busy core and second, as in Go.
const PERIOD_US: i64 = 10_000;

#[cfg(test)]
mod tests;
