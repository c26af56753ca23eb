//! The metrics of the process, which the kernel counts, under the names that all clients of Prometheus use; and the version.
//! In: files of `/proc/self` → out: rows for the writer; only the version where the system has no such files.
//! Uses three reads and a list of descriptors for each scrape; never asks the allocator.
//! Changed here: which values of the process are metrics.

use std::{fs, path::Path};

use rustix::{param::clock_ticks_per_second, process};

use fanwire_telemetry::MetricsWriter;

/// Writes the standard metrics, whose names have no prefix.
pub fn standard(writer: &mut impl MetricsWriter) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (field, name, help) in [
        ("VmRSS", "process_resident_memory_bytes", "Resident memory in bytes"),
        ("VmSize", "process_virtual_memory_bytes", "Virtual memory in bytes"),
    ] {
        if let Some(bytes) = field_bytes(&status, field) {
            writer.gauge(name, help, bytes);
        }
    }
    if let Ok(descriptors) = fs::read_dir("/proc/self/fd") {
        writer.gauge("process_open_fds", "Open file descriptors", descriptors.count() as u64);
    }
    let limit = process::getrlimit(process::Resource::Nofile).current.unwrap_or(u64::MAX);
    writer.gauge("process_max_fds", "Maximum number of open file descriptors", limit);
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    if let Some(times) = Times::of(&stat) {
        let ticks = clock_ticks_per_second() as f64;
        let help = "User and system CPU time in seconds";
        writer.seconds("process_cpu_seconds", help, [([], times.cpu_ticks as f64 / ticks)]);
        let system = fs::read_to_string("/proc/stat").unwrap_or_default();
        if let Some(booted) = boot_second(&system) {
            let started = booted + times.started_ticks / clock_ticks_per_second();
            let help = "Start of the process, in Unix seconds";
            writer.gauge("process_start_time_seconds", help, started);
        }
    }
}

/// Writes the version of the build, and the highest resident memory.
pub fn write(writer: &mut impl MetricsWriter) {
    let version = [("version", env!("CARGO_PKG_VERSION").to_owned())];
    writer.gauges("build_info", "Version of the server; always 1", [(version, 1)]);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(bytes) = field_bytes(&status, "VmHWM") {
        let help = "Highest resident memory since the start";
        writer.gauge("process_resident_memory_max_bytes", help, bytes);
    }
}

/// The resident memory of the process in bytes.
pub fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    field_bytes(&status, "VmRSS")
}

/// The most memory that the process may have: the smallest limit of its cgroup and of those above it (version 2), or the
/// memory of the machine.
pub fn memory_limit_bytes() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let path = cgroup_path(&groups).unwrap_or_default();
    let limits = Path::new(path).ancestors().filter_map(|group| {
        let folder = Path::new("/sys/fs/cgroup").join(group.strip_prefix("/").unwrap_or(group));
        let limit = fs::read_to_string(folder.join("memory.max")).ok()?;
        limit.trim().parse::<u64>().ok()
    });
    limits.chain(field_bytes(&machine, "MemTotal")).min()
}

/// The path of the process in the hierarchy of version 2 (cgroups(7)).
fn cgroup_path(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

/// The value of a field in kB (proc_pid_status(5)), in bytes.
fn field_bytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Times of a process in clock ticks.
#[derive(Debug, PartialEq)]
struct Times {
    cpu_ticks: u64,
    /// Start of the process in ticks since the system started.
    started_ticks: u64,
}

impl Times {
    /// Fields 14, 15 and 22 (proc_pid_stat(5)); the name of the program, field 2, may have spaces and parentheses.
    fn of(stat: &str) -> Option<Self> {
        let (_, after_name) = stat.rsplit_once(')')?;
        let mut fields = after_name.split_whitespace().skip(11);
        let mut next = || fields.next()?.parse::<u64>().ok();
        let cpu_ticks = next()? + next()?;
        let started_ticks = fields.nth(6)?.parse().ok()?;
        Some(Self { cpu_ticks, started_ticks })
    }
}

/// The Unix second at which the system started (proc_stat(5)).
fn boot_second(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
