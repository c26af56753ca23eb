//! Claims `room` and `areas`: a simulation at 60 Hz with 500 clients, and a world with 2,000 viewers.
//! In: seconds of each row → out: tables of builds, messages, times, allocations; of CPU and bytes.
//! Uses the scenarios `room` and `areas`, with their servers in processes of their own.
//! Changed here: the rows. What the simulations do is in `room::server` and `areas::server`.

use anyhow::Result;

use super::page::{Table, figure};
use crate::areas::Areas;
use crate::room::{Contender, Room, number};
use crate::setup::Setup;
use crate::stats::grouped;

/// # Errors
/// A server that does not start, or players without a state.
pub(super) fn room(setup: &Setup, seconds: f64) -> Result<Table> {
    let heads = [
        "way",
        "ticks",
        "late",
        "built",
        "published",
        "waiting",
        "tick p50 µs",
        "p95",
        "p99",
        "allocations",
        "KiB",
        "last client p50 ms",
        "p99",
        "CPU %",
    ];
    let mut table = Table::new(&heads, ROOM_NOTE);
    let ways = [
        ("one state for all, raw", Contender::Raw, false),
        ("one state for all, in context", Contender::Context, false),
        ("naive: one for each client, raw", Contender::Raw, true),
    ];
    for (name, contender, is_naive) in ways {
        let outcome = Room::at_60_hz(setup.clone(), seconds, is_naive).measure(contender)?;
        let report = |field| number(&outcome.report, field);
        let ticks = report("ticks_since").max(1.0);
        table.row(vec![
            name.to_owned(),
            grouped(ticks),
            grouped(report("overruns")),
            grouped(report("built")),
            grouped(report("messages")),
            grouped(report("waiting")),
            grouped(report("tick_p50_us")),
            grouped(report("tick_p95_us")),
            grouped(report("tick_p99_us")),
            figure(report("allocations") / ticks),
            figure(report("allocated_bytes") / ticks / 1024.0),
            figure(outcome.last_p50_ms),
            figure(outcome.last_p99_ms),
            figure(outcome.cpu_share * 100.0),
        ]);
    }
    Ok(table)
}

/// # Errors
/// A server that does not start, or viewers that get nothing.
pub(super) fn areas(setup: &Setup, seconds: f64) -> Result<Table> {
    let heads = [
        "objects",
        "bare CPU %",
        "raw CPU %",
        "world",
        "context CPU %",
        "changes B",
        "raw B",
        "context B",
        "raw ÷ changes",
        "shards ÷ bare",
    ];
    let mut table = Table::new(&heads, AREAS_NOTE);
    for row in Areas::of_three_sizes(setup.clone(), seconds).rows()? {
        table.row(vec![
            grouped(row.objects as f64),
            figure(row.bare * 100.0),
            figure(row.raw.cpu_share * 100.0),
            figure(row.raw.world_share * 100.0),
            figure(row.context.cpu_share * 100.0),
            figure(row.raw.change_bytes),
            figure(row.raw.bytes),
            figure(row.context.bytes),
            figure(row.raw.bytes / row.raw.change_bytes),
            figure((row.raw.cpu_share - row.raw.world_share) / row.bare),
        ]);
    }
    Ok(table)
}

const ROOM_NOTE: &str = "500 clients, 60 ticks per second, a JSON state of 2 KiB of which a tenth changes in each tick, 30 inputs per second and \
client. Times of ticks are bounds of histogram buckets, from the commands of a tick to the publication of its last message. \
Allocations and KiB are those of the simulation's step, for each tick.";
const AREAS_NOTE: &str = "2,000 viewers of nine tiles each, 100 objects per tile, of which a tenth moves in each of ten ticks a second. Bytes are per \
viewer and tick. The bare loop sends each viewer as many bytes as the visible changes have.";
