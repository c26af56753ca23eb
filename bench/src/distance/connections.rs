//! Rows of `distance` about connections: how long a lone one takes, what many cost, and what a process takes without any.
//! In: both builds, and Centrifugo → out: milliseconds, µs of CPU, MiB.
//! Uses the clients of `connects`.
//! Changed here: how many connections are measured.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::{Distance, Figure};
use crate::connects::Connects;
use crate::connects::lone::{self, Times};
use fanwire_load::machine;

/// Clients that connect one after the other, and backends without keep-alive.
pub(super) fn lone(distance: &Distance) -> Result<Vec<Figure>> {
    let subscribed = distance.of_servers(|start| {
        let target = start(json!({}))?;
        Ok(Times::measure(LONE, || lone::subscribe(target.address()))?.median())
    })?;
    let posted = distance.of_servers(|start| {
        let target = start(json!({}))?;
        Ok(Times::measure(LONE, || lone::publish(target.address()))?.median())
    })?;
    Ok(vec![
        subscribed.line("lone connect until subscribed", "p50 ms", |ms| *ms),
        posted.line("POST on a new connection", "p50 ms", |ms| *ms),
    ])
}

/// Resident memory of a process without connections.
pub(super) fn empty(distance: &Distance) -> Result<Vec<Figure>> {
    let resident = distance.of_servers(|start| {
        let target = start(json!({}))?;
        std::thread::sleep(SETTLE);
        Ok(machine::resident_bytes(target.pid())? as f64 / f64::from(1 << 20))
    })?;
    Ok(vec![resident.line("process without connections", "MiB", |mib| *mib)])
}

/// CPU of one of many connects with a subscription.
pub(super) fn connects(
    distance: &Distance,
    name: &'static str,
    count: usize,
) -> Result<Vec<Figure>> {
    let cpu = distance.of_builds(|binary| Connects::cpu_us(&distance.setup, binary, count))?;
    Ok(vec![cpu.line(name, "CPU µs each", |cpu| *cpu)])
}

const LONE: usize = 1_000;
/// Time for what the start needed to be freed.
const SETTLE: Duration = Duration::from_secs(2);
