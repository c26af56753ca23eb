//! Prints how fast the Redis engine publishes, as a ratio to `redis-benchmark` publishing the same bytes at the same depth.
//! In: nothing; starts a Redis of its own → out: a table.
//! Uses Debian's redis-server and redis-benchmark on the loopback. Never: a Redis that was there before.
//! Change here what the table shows: cargo run --profile dist -p fanwire-bench --example redis
#![forbid(unsafe_code)]

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use fanwire_bench::redis::RedisServer;
use fanwire_broker::{Answer, Broker as _, PublishOptions, Retention};
use fanwire_brokers::redis::{Address, Redis, RedisOptions};
use fanwire_node::protocol::Publication;

fn main() -> Result<()> {
    let server = RedisServer::start(None)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let address = Address { port: server.port(), ..Address::default() };
    let options = RedisOptions { addresses: vec![address], ..RedisOptions::default() };
    runtime.block_on(Redis::check(&options))?;
    let redis = Redis::start(&options, runtime.handle());
    print_table(&redis, &server)
}

/// How fast channels are published to.
fn print_table(redis: &Redis, server: &RedisServer) -> Result<()> {
    println!(
        "Median of {ROUNDS} rounds; 200 bytes of payload; times in µs for all channels together.\n"
    );
    println!("| channels at once | redis-benchmark | engine | ratio | with history | ratio |");
    println!("|---|---|---|---|---|---|");
    for channels in [1, 100, 5_000] {
        let mut rows = Vec::new();
        for _ in 0..ROUNDS {
            let yardstick = yardstick(server, channels)?;
            let plain = publish(redis, channels, Retention::default())?;
            rows.push((yardstick, plain, publish(redis, channels, kept())?));
        }
        let column = |of: fn(&(f64, f64, f64)) -> f64| median(rows.iter().map(of).collect());
        let ratios = (column(|row| row.1 / row.0), column(|row| row.2 / row.0));
        let times = (column(|row| row.0), column(|row| row.1), column(|row| row.2));
        println!(
            "| {channels} | {:.1} | {:.1} | {:.2} | {:.1} | {:.2} |",
            times.0, times.1, ratios.0, times.2, ratios.1
        );
    }
    Ok(())
}

/// µs for `channels` plain PUBLISH of a record as long as ours, all at once on one connection.
fn yardstick(server: &RedisServer, channels: usize) -> Result<f64> {
    let feed = format!("fanwire.feed.{{:{}}}", name(1_000));
    let record = [b'r'; PAYLOAD.len() + 7]; // a version byte, and two heads of Protobuf
    server.publish_us(None, (&feed, &record), channels, publications(channels))
}

/// µs for publishing to `channels` channels at once until each is answered, the mean of many times, as the yardstick's.
fn publish(redis: &Redis, channels: usize, retention: Retention) -> Result<f64> {
    let names: Vec<String> = (0..channels).map(name).collect();
    let times = publications(channels) / channels;
    let began = Instant::now();
    for _ in 0..times {
        let (sender, answers) = channel();
        for name in &names {
            let publication = Publication { data: PAYLOAD.into(), ..Publication::default() };
            let options = PublishOptions::default();
            let answer = redis.publish(name, publication, &options, retention, began);
            collect(answer, &sender);
        }
        drop(sender);
        let mut count = 0;
        for answer in answers {
            answer?;
            count += 1;
        }
        ensure!(count == channels, "{count} of {channels} were answered");
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / times as f64)
}

/// Sends on whether an answer was one.
fn collect<T: Send + 'static>(answer: Answer<T>, sender: &Sender<Result<()>>) {
    let sender = sender.clone();
    answer.then(move |result| {
        let _ = sender.send(result.map(drop).map_err(|error| anyhow::anyhow!("{error:?}")));
    });
}

fn kept() -> Retention {
    Retention { size: 10, ttl: Duration::from_secs(60), meta_ttl: Duration::from_secs(600) }
}

fn name(number: usize) -> String {
    format!("channel:{number}")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const PAYLOAD: &[u8] = &[b'p'; 200];
const ROUNDS: usize = 5;

/// In each measurement.
fn publications(channels: usize) -> usize {
    (channels * 10).max(20_000)
}
