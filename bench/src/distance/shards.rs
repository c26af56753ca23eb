//! Rows of `distance` with two shards on two cores next to one: how much sooner all subscribers have a publication.
//! In: subscribers → out: the ratio of the times, and of the CPU, for both builds.
//! Uses the generator for most subscribers, which sleeps while the server delivers. Those that connect last block, and tell the time.
//! Changed here: when a delivery ends. How a client connects is in `connects::lone`.

use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use super::{Distance, Figure};
use crate::caller::Caller;
use crate::connects::lone;
use crate::fanout::made_up_payloads;
use crate::stats::median;
use crate::target::{API_KEY, Target};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::{answer_length, publish_request};
use fanwire_load::generator::{Deliveries, Generator, Profile};
use fanwire_load::machine::Meter;

pub(super) fn measure(distance: &Distance, subscribers: usize) -> Result<Vec<Figure>> {
    let costs = distance.of_builds(|binary| {
        // Each in a thread of its own, which begins on all cores and hands them on to the server.
        let deliver = |shards| {
            let delivered = thread::scope(|scope| {
                scope.spawn(|| delivery(distance, binary, subscribers, shards)).join()
            });
            delivered.expect("the thread of a delivery does not panic")
        };
        let one = deliver(1)?;
        let two = deliver(2)?;
        Ok(Cost { time: two.time / one.time, cpu: two.cpu / one.cpu })
    })?;
    let name = if subscribers < 10_000 {
        "two shards, 1,000 subscribers"
    } else {
        "two shards, 10,000 subscribers"
    };
    Ok(vec![
        costs.line(name, "time / one shard", |cost| cost.time),
        costs.line(name, "CPU / one shard", |cost| cost.cpu),
    ])
}

/// Seconds from a publication until the last subscriber has it, and of CPU.
struct Cost {
    time: f64,
    cpu: f64,
}

/// Keeps the thread on the generator's core once the server has started.
fn delivery(distance: &Distance, binary: &Path, subscribers: usize, shards: u32) -> Result<Cost> {
    let target = Target::fanwire(binary, None, json!({ "shards": shards }))?;
    distance.setup.pin_generator()?;
    let mut generator = Generator::new(false)?;
    let profile = Profile {
        plain: false,
        encoding: Encoding::Json,
        compression: false,
        channels: vec![lone::CHANNEL.to_owned()],
    };
    generator.open(target.address(), subscribers, &profile)?;
    let mut last = Vec::new();
    for _ in 0..LAST {
        last.push(lone::subscriber(target.address())?);
    }
    let field = format!("\"data\":{}", made_up_payloads(200)[0]);
    let request = publish_request(lone::CHANNEL, &field, API_KEY);
    let mut publisher = Caller::open(target.address())?;
    let mut times = Vec::new();
    let mut cpu = 0.0;
    let began = Instant::now();
    while began.elapsed().as_secs_f64() < distance.seconds || times.len() < PUBLICATIONS_MIN {
        let meter = Meter::start(target.pid(), distance.setup.server_core)?;
        let published_at = Instant::now();
        publisher.send(&request)?;
        for subscriber in &mut last {
            lone::take_frame(subscriber)?;
        }
        times.push(published_at.elapsed().as_secs_f64());
        publisher.take(answer_length)?;
        let mut received = Deliveries::default();
        while received.0 < subscribers as u64 {
            generator.turn(None, &mut received)?;
        }
        cpu += meter.stop()?.cpu_seconds;
    }
    Ok(Cost { cpu: cpu / times.len() as f64, time: median(times) })
}

/// Enough that each shard has some of them.
const LAST: usize = 8;
const PUBLICATIONS_MIN: usize = 20;
