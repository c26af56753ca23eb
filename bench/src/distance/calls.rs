//! Rows of `distance` about calls of the server API without subscribers.
//! In: both builds, and Centrifugo → out: time and CPU of a publish through Redis, of a broadcast, of a call by gRPC.
//! Uses the callers of `publish` and `broadcast`, which wait for each answer.
//! Changed here: how many calls are measured.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::{Distance, Figure, OfEach};
use crate::broadcast::Call;
use crate::publish::{Grpc, Http};
use crate::redis::RedisServer;
use crate::stats::median;
use crate::target::{API_KEY, Target};
use fanwire_load::machine::Meter;

/// µs of one call: the median of the time, and CPU of the server.
struct Cost {
    p50: f64,
    cpu: f64,
}

/// How many calls, and the pause before each, in which the server falls asleep.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    calls: u32,
    pause: Duration,
}

pub(super) const BACK_TO_BACK: Pace = Pace { calls: 5_000, pause: Duration::ZERO };
pub(super) const PACED: Pace = Pace { calls: 500, pause: Duration::from_millis(2) };
const BROADCASTS: Pace = Pace { calls: 200, pause: Duration::ZERO };

impl Cost {
    /// Measures calls, after some that warm up the server.
    fn measure(
        target: &Target,
        core: usize,
        pace: Pace,
        mut call: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        for _ in 0..pace.calls / WARM_UP_PART {
            call()?;
        }
        let meter = Meter::start(target.pid(), core)?;
        let mut times = Vec::new();
        for _ in 0..pace.calls {
            thread::sleep(pace.pause);
            let began = Instant::now();
            call()?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        let cpu = meter.stop()?.cpu_seconds * 1e6 / f64::from(pace.calls);
        Ok(Self { p50: median(times), cpu })
    }
}

/// One POST after the other, which its server publishes through a Redis of its own.
pub(super) fn redis(distance: &Distance, name: &'static str, pace: Pace) -> Result<Vec<Figure>> {
    let costs = distance.of_servers(|start| {
        let redis = RedisServer::start(Some(distance.setup.generator_core))?;
        let target = start(json!({ "engine": redis.engine() }))?;
        let mut http = Http::open(target.address(), DATA)?;
        Cost::measure(&target, distance.setup.server_core, pace, || http.publish(1))
    })?;
    Ok(lines(name, &costs))
}

/// A broadcast of 100 bytes to 5,000 channels in memory.
pub(super) fn broadcast(distance: &Distance) -> Result<Vec<Figure>> {
    let call = Call::new(5_000, 100);
    let costs = distance.of_servers(|start| {
        let target = start(json!({}))?;
        let mut caller = call.open(&target)?;
        let call = || call.micros(&mut caller).map(drop);
        Cost::measure(&target, distance.setup.server_core, BROADCASTS, call)
    })?;
    Ok(lines("broadcast to 5,000", &costs))
}

/// CPU of a publish by a call of gRPC; the peer is a POST to this build.
pub(super) fn grpc(distance: &Distance) -> Result<Vec<Figure>> {
    let core = distance.setup.server_core;
    let settings = json!({ "grpc_api": {
        "enabled": true, "address": "127.0.0.1", "port": 0, "key": API_KEY,
    } });
    let start = |binary: &Path| Target::fanwire(binary, Some(core), settings.clone());
    let calls = distance.of_builds(|binary| {
        let target = start(binary)?;
        let mut grpc = Grpc::open(target.grpc_address()?, DATA)?;
        Cost::measure(&target, core, BACK_TO_BACK, || grpc.publish(1))
    })?;
    let target = start(&distance.setup.binary()?)?;
    let mut http = Http::open(target.address(), DATA)?;
    let post = Cost::measure(&target, core, BACK_TO_BACK, || http.publish(1))?;
    let line = calls.line("publish by a call of gRPC", "CPU µs", |cost| cost.cpu);
    Ok(vec![Figure { peer: Some(("POST", post.cpu)), ..line }])
}

fn lines(name: &'static str, costs: &OfEach<Cost>) -> Vec<Figure> {
    let time = costs.line(name, "p50 µs", |cost| cost.p50);
    vec![time, costs.line(name, "CPU µs", |cost| cost.cpu)]
}

/// 100 bytes of JSON.
const DATA: &str = r#""0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789""#;
/// Calls that are not measured, as a part of those that are.
const WARM_UP_PART: u32 = 5;
