//! The metrics of the process, which the kernel counts.
//! In: `/proc/self/status` → out: rows for the writer; none where the system has no such file.
//! Uses one read of that file for each scrape; never asks the allocator.
//! Changed here: which values of the process are metrics.

use std::fmt;

use super::writer::MetricsWriter;

pub(super) fn write(writer: &mut impl MetricsWriter) -> fmt::Result {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(()) };
    for (field, name, help) in FIELDS {
        if let Some(bytes) = field_bytes(&status, field) {
            writer.gauge(name, help, bytes)?;
        }
    }
    Ok(())
}

/// The value of a field in kB (proc_pid_status(5)), in bytes.
fn field_bytes(status: &str, field: &str) -> Option<usize> {
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<usize>().ok()?.checked_mul(1024)
}

const FIELDS: [(&str, &str, &str); 2] = [
    ("VmRSS", "process_resident_memory_bytes", "Resident memory of the process"),
    ("VmHWM", "process_resident_memory_max_bytes", "Highest resident memory since the start"),
];

#[cfg(test)]
mod tests;
