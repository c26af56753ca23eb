//! The heap profile: which functions allocated the memory that is in use, by samples.
//! In: allocations and frees that `SamplingAllocator` shows → out: a file with objects and bytes in use, by stack.
//! Uses one lock per sample and one table lookup per free. Never: touches the memory that it counts.
//! Changed here: how often a sample is taken and what it stands for.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::format::{ProfileBuilder, Quantity, symbols};

/// Starts to take samples, of allocations from now on. Returns whether the process's allocator is a
/// [`SamplingAllocator`](crate::SamplingAllocator); with another one there are no samples.
pub fn enable() -> bool {
    IS_ENABLED.store(true, Relaxed);
    drop(std::hint::black_box(Box::new(0_u64)));
    IS_INSTALLED.load(Relaxed)
}

/// The memory in use as a gzipped profile, estimated from the samples. `None` when no samples are taken.
pub fn profile() -> Option<Vec<u8>> {
    let _quiet = Quiet::enter()?;
    if !IS_INSTALLED.load(Relaxed) {
        return None;
    }
    let mut stacks = BTreeMap::<Box<[u64]>, [f64; 2]>::new();
    for sample in samples().values() {
        let [objects, bytes] = stacks.entry(sample.stack.clone()).or_default();
        *objects += sample.stands_for();
        *bytes += sample.stands_for() * sample.bytes as f64;
    }
    let objects = Quantity { name: "inuse_objects", unit: "count" };
    let space = Quantity { name: "inuse_space", unit: "bytes" };
    let period_of = Quantity { name: "space", unit: "bytes" };
    let mut builder = ProfileBuilder::new(&[objects, space], period_of, SAMPLE_BYTES as i64);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    builder.set_time(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX), 0);
    for (stack, values) in stacks {
        let value = values.map(|value| value.round() as i64).to_vec();
        builder.sample(&stack[own_frames(&stack)..], value, None);
    }
    Some(builder.finish())
}

/// Whether samples are taken.
#[inline]
pub(crate) fn is_enabled() -> bool {
    IS_ENABLED.load(Relaxed)
}

/// Takes a sample of new memory, if the bytes since the thread's last sample are enough.
#[cold]
pub(crate) fn allocated(address: usize, bytes: usize, trace: Trace) {
    IS_INSTALLED.store(true, Relaxed);
    let is_due = THREAD.with(|thread| thread.spend(bytes));
    if !is_due || address == 0 {
        return;
    }
    let Some(_quiet) = Quiet::enter() else { return };
    let sample = HeapSample { bytes, stack: stack(trace) };
    let mut samples = samples();
    if samples.insert(address, sample).is_none() {
        FILTER[slot(address)].fetch_add(1, Relaxed);
    }
}

/// Forgets the sample of memory that is about to be freed, if there is one.
#[cold]
pub(crate) fn freed(address: usize) {
    if FILTER[slot(address)].load(Relaxed) == 0 {
        return;
    }
    let Some(_quiet) = Quiet::enter() else { return };
    let removed = samples().remove(&address);
    if removed.is_some() {
        FILTER[slot(address)].fetch_sub(1, Relaxed);
    }
}

/// Calls a function with the return addresses of the stack, the innermost first, until it returns false.
pub(crate) type Trace = fn(&mut dyn FnMut(usize) -> bool);

/// Memory in use that was sampled.
struct HeapSample {
    bytes: usize,
    /// The innermost address first; of return addresses, the address before.
    stack: Box<[u64]>,
}

impl HeapSample {
    /// The number of allocations of this size for one sample: memory of `bytes` is sampled with the probability
    /// 1 − e^(−bytes ÷ `SAMPLE_BYTES`).
    fn stands_for(&self) -> f64 {
        let bytes = self.bytes.max(1) as f64;
        -1.0 / (-bytes / SAMPLE_BYTES as f64).exp_m1()
    }
}

/// The thread's part of the state. Without destructors, so that it is valid until the thread's last free.
struct Thread {
    /// Bytes until the next sample.
    left: Cell<i64>,
    /// The state of the random numbers; 0 before the first one.
    seed: Cell<u64>,
    /// The thread is inside this module: its allocations are not sampled.
    is_quiet: Cell<bool>,
}

impl Thread {
    /// Returns whether the allocation of `bytes` is to be sampled.
    fn spend(&self, bytes: usize) -> bool {
        if self.seed.get() == 0 {
            let address = std::ptr::from_ref(self).addr() as u64;
            self.seed.set(address.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            self.left.set(self.interval());
        }
        let left = self.left.get().saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        let is_due = left < 0;
        self.left.set(if is_due { self.interval() } else { left });
        is_due
    }

    /// Bytes until the next sample: exponentially distributed, so that no pattern of sizes is preferred.
    fn interval(&self) -> i64 {
        // Xorshift, Marsaglia 2003.
        let mut seed = self.seed.get();
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        self.seed.set(seed);
        let uniform = ((seed >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        (-uniform.ln() * SAMPLE_BYTES as f64) as i64
    }
}

/// While it lives, allocations of this thread are not sampled: the lock of the samples may be held.
struct Quiet;

impl Quiet {
    /// `None` if the thread is inside this module already.
    fn enter() -> Option<Self> {
        let was_quiet = THREAD.with(|thread| thread.is_quiet.replace(true));
        if was_quiet { None } else { Some(Self) }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        THREAD.with(|thread| thread.is_quiet.set(false));
    }
}

fn samples() -> MutexGuard<'static, BTreeMap<usize, HeapSample>> {
    SAMPLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stack of this call.
fn stack(trace: Trace) -> Box<[u64]> {
    let mut stack = Vec::with_capacity(DEPTH_MAX);
    trace(&mut |return_address| {
        stack.push(return_address.saturating_sub(1) as u64);
        stack.len() < DEPTH_MAX
    });
    stack.into()
}

/// How many of the innermost frames belong to the sampling.
fn own_frames(stack: &[u64]) -> usize {
    let is_own = |address: &u64| {
        symbols(*address).iter().any(|(name, ..)| OWN_NAMES.iter().any(|own| name.contains(own)))
    };
    let own = &stack[..stack.len().min(OWN_FRAMES_MAX)];
    own.iter().rposition(is_own).map_or(0, |last| last + 1)
}

/// The place in `FILTER` for an address.
fn slot(address: usize) -> usize {
    ((address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - FILTER_BITS)) as usize
}

static IS_ENABLED: AtomicBool = AtomicBool::new(false);

/// Set by the first allocation that `SamplingAllocator` shows.
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// Samples by address. A lock of the standard library, because others allocate when a thread waits.
static SAMPLES: Mutex<BTreeMap<usize, HeapSample>> = Mutex::new(BTreeMap::new());

/// The number of samples by `slot`, so that almost every free finds 0 and takes no lock. A GiB in use has some 2,000
/// samples.
static FILTER: [AtomicU16; 1 << FILTER_BITS] = [const { AtomicU16::new(0) }; 1 << FILTER_BITS];

const FILTER_BITS: u32 = 16;

/// Mean of allocated bytes per sample: `runtime.MemProfileRate` of Go.
const SAMPLE_BYTES: usize = 512 * 1024;

/// The longest stack that is recorded.
const DEPTH_MAX: usize = 64;

/// Parts of the names of functions that lead from an allocation to its sample.
const OWN_NAMES: [&str; 3] = ["SamplingAllocator", "__rust_alloc", "__rust_realloc"];

/// The sampling itself has fewer frames than this.
const OWN_FRAMES_MAX: usize = 12;

thread_local! {
    static THREAD: Thread = const {
        Thread { left: Cell::new(0), seed: Cell::new(0), is_quiet: Cell::new(false) }
    };
}

#[cfg(test)]
mod tests;
