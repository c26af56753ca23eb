//! CPU, memory and bytes of the measured time.
//! In: what there was at its beginning and at its end → out: the differences.
//! Uses /proc where it is there. Never: decides when the measured time begins.
//! Changed here: what is measured next to latencies.

use anyhow::{Context, Result};
use std::time::{Duration, Instant};

use crate::machine;

/// Work of the server and the generator in the measured time.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Usage {
    pub(crate) seconds: f64,
    /// Deliveries to regular subscribers.
    pub(crate) deliveries: u64,
    pub(crate) bytes: u64,
    /// The share of time in which the generator did something.
    pub(crate) busy_share: f64,
    pub(crate) generator_cpu_seconds: Option<f64>,
    pub(crate) server_cpu_seconds: Option<f64>,
    pub(crate) resident_bytes: Option<(u64, u64)>,
}

/// Counts at the begin of the measured time.
pub(crate) struct UsageMeter {
    pid: Option<u32>,
    started: Instant,
    deliveries: u64,
    bytes: u64,
    idle: Duration,
    generator_cpu: Option<f64>,
    server_cpu: Option<f64>,
    resident: Option<u64>,
}

impl UsageMeter {
    /// # Errors
    /// The process of the server is not there.
    pub(crate) fn start(
        pid: Option<u32>,
        deliveries: u64,
        bytes: u64,
        idle: Duration,
    ) -> Result<Self> {
        let reading = pid.map(|pid| -> Result<_> {
            Ok((machine::cpu_seconds(pid)?, machine::resident_bytes(pid)?))
        });
        let server = reading.transpose().with_context(|| match pid {
            Some(pid) => format!("--pid {pid}"),
            None => "--pid".to_owned(),
        })?;
        Ok(Self {
            pid,
            started: Instant::now(),
            deliveries,
            bytes,
            idle,
            generator_cpu: machine::cpu_seconds(std::process::id()).ok(),
            server_cpu: server.map(|(cpu, _)| cpu),
            resident: server.map(|(_, resident)| resident),
        })
    }

    pub(crate) fn stop(self, deliveries: u64, bytes: u64, idle: Duration) -> Usage {
        let seconds = self.started.elapsed().as_secs_f64();
        let cpu = |pid: u32, before: Option<f64>| {
            before.and_then(|before| Some(machine::cpu_seconds(pid).ok()? - before))
        };
        let resident = self.pid.and_then(|pid| machine::resident_bytes(pid).ok());
        Usage {
            seconds,
            deliveries: deliveries - self.deliveries,
            bytes: bytes - self.bytes,
            busy_share: 1.0 - ((idle - self.idle).as_secs_f64() / seconds).clamp(0.0, 1.0),
            generator_cpu_seconds: cpu(std::process::id(), self.generator_cpu),
            server_cpu_seconds: self.pid.and_then(|pid| cpu(pid, self.server_cpu)),
            resident_bytes: self.resident.zip(resident),
        }
    }
}
