//! Claim `broadcast`: one call of the server API that publishes into 1 to 5,000 channels.
//! In: the program of Centrifugo, if it is to be shown, a time for each point → out: a table of medians.
//! Uses the calls of `broadcast`; the memory engine and a Redis of the run's own.
//! Changed here: the points and the servers.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::page::{Table, figure};
use crate::broadcast::Call;
use crate::redis::RedisServer;
use crate::setup::Setup;
use crate::stats::{grouped, median};
use crate::target::Target;

/// # Errors
/// A server that does not start, or an answer that is no result for every channel.
pub(super) fn table(setup: &Setup, centrifugo: Option<&Path>, patience: Duration) -> Result<Table> {
    let binary = setup.binary()?;
    let core = setup.server_core;
    let redis = [
        RedisServer::start(Some(setup.generator_core))?,
        RedisServer::start(Some(setup.generator_core))?,
    ];
    let in_memory = || json!({ "engine": { "type": "memory" } });
    let with_redis = |server: &RedisServer| json!({ "engine": server.engine() });
    let mut heads = vec!["channels", "memory µs", "Redis µs"];
    let mut targets = vec![
        Target::fanwire(&binary, Some(core), in_memory())?,
        Target::fanwire(&binary, Some(core), with_redis(&redis[0]))?,
    ];
    if let Some(program) = centrifugo {
        heads.extend(["Centrifugo, memory µs", "Centrifugo, Redis µs"]);
        heads.extend(["ours ÷ Centrifugo, memory", "Redis"]);
        targets.push(Target::centrifugo(program, core, in_memory())?);
        targets.push(Target::centrifugo(program, core, with_redis(&redis[1]))?);
    }
    let mut table = Table::new(&heads, NOTE);
    for channels in POINTS {
        let call = Call::new(channels, BYTES);
        let mut medians = Vec::new();
        for target in &targets {
            medians.push(measure(&call, target, patience)?);
        }
        let mut cells = vec![grouped(channels as f64)];
        cells.extend(medians.iter().map(|micros| figure(*micros)));
        if let [memory, redis, their_memory, their_redis] = medians[..] {
            cells.extend([memory / their_memory, redis / their_redis].map(figure));
        }
        table.row(cells);
    }
    Ok(table)
}

/// The median of the calls in this time, in µs; the first tenth of it warms up.
fn measure(call: &Call, target: &Target, patience: Duration) -> Result<f64> {
    let mut caller = call.open(target)?;
    let began = Instant::now();
    let mut times = Vec::new();
    while began.elapsed() < patience || times.is_empty() {
        let micros = call.micros(&mut caller)?;
        if began.elapsed() >= patience / 10 {
            times.push(micros);
        }
    }
    Ok(median(times))
}

const POINTS: [usize; 8] = [1, 10, 50, 100, 500, 1_000, 2_500, 5_000];
const BYTES: usize = 100;
const NOTE: &str = "Median of one `POST /api/broadcast` after the other on one connection, 100 bytes of JSON, channels without subscribers and \
without history. Redis and the caller share the other core.";
