//! Figures of the kernel: CPU time and resident memory of a process, work on a core, limits.
//! In: process ids and core numbers → out: seconds and bytes.
//! Uses /proc (Linux) and rustix; never starts or stops anything.
//! Changed here: how a quantity is read; when it is read is the scenario's business.

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;
use std::ops::AddAssign;
use std::path::Path;
use std::time::Instant;
use std::{fs, io};

/// CPU seconds (user and system) of all living threads of a process, in nanosecond steps (/proc/PID/stat has 10 ms).
/// A thread that ends while the list is read counts nothing.
///
/// # Errors
/// The process is gone.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    threads_cpu_seconds(pid, |_| true)
}

/// CPU seconds that the threads of this name in a process have taken.
///
/// # Errors
/// The process is gone.
pub fn thread_cpu_seconds(pid: u32, name: &str) -> Result<f64> {
    threads_cpu_seconds(pid, |folder| {
        fs::read_to_string(folder.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    })
}

fn threads_cpu_seconds(pid: u32, counts: impl Fn(&Path) -> bool) -> Result<f64> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let folder = thread?.path();
        if !counts(&folder) {
            continue;
        }
        let text = match fs::read_to_string(folder.join("schedstat")) {
            Err(error) if has_ended(&error) => continue,
            text => text?,
        };
        let on_cpu = text.split_ascii_whitespace().next().context("an empty schedstat")?;
        nanoseconds += on_cpu.parse::<u64>()?;
    }
    Ok(nanoseconds as f64 / 1e9)
}

/// Whether a file of /proc could not be read because its thread is gone: before it was opened, or after.
fn has_ended(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// Resident memory of a process in bytes.
///
/// # Errors
/// The process is gone.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    memory(pid, "VmRSS:")
}

/// The most resident memory that a process has had so far, in bytes.
///
/// # Errors
/// The process is gone.
pub fn peak_resident_bytes(pid: u32) -> Result<u64> {
    memory(pid, "VmHWM:")
}

fn memory(pid: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let line = value.with_context(|| format!("no {name}"))?;
    let kilobytes = line.trim().trim_end_matches(" kB").parse::<u64>()?;
    Ok(kilobytes * 1024)
}

/// Work of a process and of everybody else on one core between two moments.
pub struct Meter {
    pid: u32,
    core: usize,
    started: Instant,
    process: f64,
    core_total: f64,
}

/// Work that a `Meter` measured.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    pub wall_seconds: f64,
    /// CPU seconds of the process.
    pub cpu_seconds: f64,
    /// CPU seconds of everybody else on the core; its clock is coarse, so short stretches may be off by 0.01 either way.
    others_seconds: f64,
}

impl Usage {
    /// Share of the core's time that went to others; above 0.05 the numbers are noisy.
    pub fn others_share(&self) -> f64 {
        (self.others_seconds / self.wall_seconds).max(0.0)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, later: Self) {
        self.wall_seconds += later.wall_seconds;
        self.cpu_seconds += later.cpu_seconds;
        self.others_seconds += later.others_seconds;
    }
}

impl Meter {
    pub fn start(pid: u32, core: usize) -> Result<Self> {
        let process = cpu_seconds(pid)?;
        let core_total = core_seconds(core)?;
        Ok(Self { pid, core, started: Instant::now(), process, core_total })
    }

    pub fn stop(&self) -> Result<Usage> {
        let wall_seconds = self.started.elapsed().as_secs_f64();
        let cpu_seconds = cpu_seconds(self.pid)? - self.process;
        let others_seconds = core_seconds(self.core)? - self.core_total - cpu_seconds;
        Ok(Usage { wall_seconds, cpu_seconds, others_seconds })
    }
}

/// Seconds in which a core was not idle (steps of 1/100 s; time stolen by the hypervisor counts).
fn core_seconds(core: usize) -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let name = format!("cpu{core}");
    let mut lines = stat.lines().map(|line| line.split_ascii_whitespace());
    let fields = lines.find_map(|mut fields| (fields.next() == Some(&name)).then_some(fields));
    let columns = fields.with_context(|| format!("no core {core}"))?.map(str::parse::<u64>);
    let ticks = columns.collect::<Result<Vec<_>, _>>()?;
    // user nice system idle iowait irq softirq steal; guest time is part of user.
    let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|column| ticks.get(*column)).sum::<u64>();
    Ok(busy as f64 / 100.0)
}

/// Facts about a machine that a reader of figures needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MachineFacts {
    /// Name and release of the kernel, and the architecture.
    pub kernel: String,
    pub processor: Option<String>,
    /// That this process may use.
    pub cores: usize,
    pub memory_bytes: Option<u64>,
}

/// The facts of this machine.
pub fn facts() -> MachineFacts {
    let system = rustix::system::uname();
    let kernel = [system.sysname(), system.release(), system.machine()];
    let value = |file: &str, name: &str| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find(|line| line.starts_with(name))?.to_owned();
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = value("/proc/meminfo", "MemTotal");
    let kibibytes = memory.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    MachineFacts {
        kernel: kernel.map(|part| part.to_string_lossy().into_owned()).join(" "),
        processor: value("/proc/cpuinfo", "model name"),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: kibibytes.map(|count| count << 10),
    }
}

/// Raises this process's descriptor limit to the hard limit and returns it.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // A limit that cannot be raised shows itself when connections fail.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Keeps this thread, and what it starts, on one core.
///
/// # Errors
/// There is no such core.
pub fn pin(core: usize) -> Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).with_context(|| format!("pinning to core {core}"))
}

#[cfg(test)]
mod tests;
