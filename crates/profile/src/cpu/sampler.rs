//! The signal handler that records stacks: SIGPROF, which `setitimer` sends to a running thread per period of CPU time.
//! In: the registers of the interrupted thread → out: its stack as addresses, in memory that was allocated before.
//! Uses libc, and framehop, which unwinds without frame pointers. Never: allocates, locks or calls the system in the handler,
//! except for the thread's number. Change here: what the handler does. What becomes of the stacks: `cpu`.

#![allow(unsafe_code)] // docs/decisions/0020

use std::io;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{AcqRel, Acquire, Release},
};

use framehop::{CacheNative, MustNotAllocateDuringUnwind, UnwindRegsNative, Unwinder as _};

use super::modules::MemoryMap;

/// Recorded stacks: for each the thread, its length, and the addresses, the innermost first.
#[derive(Default)]
pub(super) struct Stacks {
    words: Box<[u64]>,
    used: usize,
    /// Samples without room in `words`.
    pub(super) lost: u64,
}

impl Stacks {
    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.used]
    }
}

/// The state of the handler during a recording.
struct Sampler {
    map: MemoryMap,
    cache: CacheNative<MustNotAllocateDuringUnwind>,
    stacks: Stacks,
}

/// The registers that unwinding starts from.
struct Registers {
    pc: u64,
    sp: u64,
    unwind: UnwindRegsNative,
}

impl Sampler {
    fn sample(&mut self, thread: u64, registers: Registers) {
        let Registers { pc, sp, unwind } = registers;
        let Stacks { words, used, lost } = &mut self.stacks;
        if words.len() - *used < 2 + DEPTH_MAX {
            *lost += 1;
            return;
        }
        let ranges = &self.map.stacks;
        let end = ranges
            .get(ranges.partition_point(|range| range.end <= sp))
            .filter(|range| range.start <= sp)
            .map_or(sp, |range| range.end);
        let mut read = |address: u64| {
            let is_inside = address >= sp && address.is_multiple_of(8);
            if is_inside && address.checked_add(8).is_some_and(|after| after <= end) {
                // SAFETY: aligned, and between the stack pointer of this thread and the end of the mapping that
                // contains its stack, which stays mapped and readable as long as the thread lives.
                Ok(unsafe { ptr::with_exposed_provenance::<u64>(address as usize).read_volatile() })
            } else {
                Err(())
            }
        };
        let start = *used + 2;
        let mut length = 0;
        let mut frames = self.map.unwinder.iter_frames(pc, unwind, &mut self.cache, &mut read);
        while length < DEPTH_MAX
            && let Ok(Some(frame)) = frames.next()
        {
            words[start + length] = frame.address_for_lookup();
            length += 1;
        }
        words[start - 2] = thread;
        words[start - 1] = length as u64;
        *used = start + length;
    }
}

/// Starts to record. Only one recording may run, which `cpu` ensures.
pub(super) fn start(period_us: i64) -> io::Result<()> {
    let stacks = Stacks { words: vec![0; WORDS].into(), used: 0, lost: 0 };
    let sampler = Sampler { map: MemoryMap::read()?, cache: CacheNative::default(), stacks };
    install_handler()?;
    SAMPLER.store(Box::into_raw(Box::new(sampler)), Release);
    let started = set_timer(period_us);
    if started.is_err() {
        stop();
    }
    started
}

/// Ends the recording, if there is one, and returns its stacks.
pub(super) fn stop() -> Option<Stacks> {
    // A timer that cannot be stopped would find no sampler, which is harmless.
    let _ = set_timer(0);
    let sampler = SAMPLER.swap(ptr::null_mut(), AcqRel);
    if sampler.is_null() {
        return None;
    }
    while IS_BUSY.swap(true, Acquire) {
        std::hint::spin_loop(); // for the handler of another thread, some µs
    }
    // SAFETY: it came from `Box::into_raw` in `start`, and the swap took it out of `SAMPLER` once. A handler reads
    // `SAMPLER` only after it has set `IS_BUSY`, so no handler uses it now and none can find it later.
    let sampler = unsafe { Box::from_raw(sampler) };
    IS_BUSY.store(false, Release);
    Some(sampler.stacks)
}

/// Records the stack of the interrupted thread, unless another thread is recording.
extern "C" fn handle(_signal: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if IS_BUSY.swap(true, Acquire) {
        return;
    }
    let sampler = SAMPLER.load(Acquire);
    // SAFETY: `IS_BUSY` is set by this handler alone, so this is the only reference, and `stop` does not free the
    // sampler before `IS_BUSY` is false.
    if let Some(sampler) = unsafe { sampler.as_mut() } {
        // SAFETY: a handler with SA_SIGINFO gets a valid `ucontext_t` (sigaction(2)).
        let context = unsafe { &*context.cast::<libc::ucontext_t>() };
        // SAFETY: the call has no arguments and cannot fail (gettid(2)).
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        sampler.sample(thread as u64, registers(context));
    }
    IS_BUSY.store(false, Release);
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> Registers {
    let register = |index: libc::c_int| context.uc_mcontext.gregs[index as usize] as u64;
    let pc = register(libc::REG_RIP);
    let sp = register(libc::REG_RSP);
    Registers { pc, sp, unwind: UnwindRegsNative::new(pc, sp, register(libc::REG_RBP)) }
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> Registers {
    let machine = &context.uc_mcontext;
    let pc = machine.pc;
    let sp = machine.sp;
    Registers { pc, sp, unwind: UnwindRegsNative::new(machine.regs[30], sp, machine.regs[29]) }
}

/// The handler stays installed: a late signal without a handler would end the process.
fn install_handler() -> io::Result<()> {
    // SAFETY: all bytes zero are a valid `sigaction`: no flags, an empty mask, the default action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as *const () as usize;
    // Without SA_ONSTACK: unwinding overflows the alternate stack that Rust gives a thread, in debug builds at least.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: `action` is valid, and the handler does only what signal-safety(7) allows.
    result(unsafe { libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut()) })
}

/// Sends SIGPROF each `period_us` of CPU time of the process; 0 ends that.
fn set_timer(period_us: i64) -> io::Result<()> {
    let period = libc::timeval { tv_sec: 0, tv_usec: period_us };
    let timer = libc::itimerval { it_interval: period, it_value: period };
    // SAFETY: `timer` is valid, and the previous value is not asked for.
    result(unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) })
}

fn result(status: libc::c_int) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Null when nothing is recorded. Read only while `IS_BUSY` is set.
static SAMPLER: AtomicPtr<Sampler> = AtomicPtr::new(ptr::null_mut());

/// A handler uses the sampler, or `stop` frees it.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// Room for the stacks of one recording, 32 MiB: some 100,000 samples of 40 functions, 30 s of 32 cores. Pages that are not
/// used are never allocated by the kernel.
const WORDS: usize = 4 << 20;

/// The longest stack that is recorded.
const DEPTH_MAX: usize = 128;
