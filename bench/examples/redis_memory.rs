//! Prints what channels take of Redis, as the Redis engine stores them: stream, meta, presence, a subscription.
//! In: nothing; starts a `redis-server` of its own → out: a table with bytes per channel, member or subscription.
//! Uses Debian's redis-server and redis-cli on the loopback. Never: a Redis that was there before.
//! Change here what the table shows: cargo run --profile dist -p fanwire-bench --example redis_memory
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use fanwire_bench::redis::RedisServer;
use fanwire_broker::Presence as _;
use fanwire_broker::PublishOptions;
use fanwire_broker::{Broker as _, Retention};
use fanwire_brokers::redis::{Address, Redis, RedisOptions};
use fanwire_node::protocol::{ClientInfo, Publication};

fn main() -> Result<()> {
    let server = RedisServer::start(None)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let address = Address { port: server.port(), ..Address::default() };
    let addresses = vec![address];
    let options = RedisOptions { addresses, ..RedisOptions::default() };
    runtime.block_on(Redis::check(&options))?;
    let redis = Redis::start(&options, runtime.handle());
    println!("| in Redis | bytes |\n|---|---|");
    streams(&redis, &server)?;
    members(&redis, &server)?;
    subscriptions(&redis, &server)?;
    Ok(())
}

/// Channels whose streams are full, one for each size of payload.
fn streams(redis: &Redis, server: &RedisServer) -> Result<()> {
    let (size, ttl, meta_ttl) = (100, Duration::from_secs(600), Duration::from_secs(6_000));
    let retention = Retention { size, ttl, meta_ttl };
    for bytes in [100, 1_000, 10_000] {
        let channel = format!("news:{bytes}");
        for _ in 0..2 * size {
            let publication = Publication { data: vec![b'p'; bytes].into(), ..Default::default() };
            let options = PublishOptions::default();
            redis
                .publish(&channel, publication, &options, retention, Instant::now())
                .wait()
                .map_err(failed)?;
        }
        let taken = bytes_of(server, &format!("fanwire.stream.{{:{channel}}}"))?;
        let share = taken as f64 / (size * bytes) as f64;
        println!("| stream of {size} × {bytes} bytes | {taken} ({share:.2} times the payloads) |");
        if bytes == 1_000 {
            let meta = bytes_of(server, &format!("fanwire.meta.{{:{channel}}}"))?;
            println!("| its meta, which stays for `history_meta_ttl` | {meta} |");
        }
    }
    Ok(())
}

/// Channels with members, each a user of its own with 24 bytes of info.
fn members(redis: &Redis, server: &RedisServer) -> Result<()> {
    for count in [10, 1_000] {
        let channel = format!("room:{count}");
        let begin = |number: u64| {
            let info = ClientInfo {
                user: format!("user-{number}"),
                client: format!("5f1b0f4c-3a8e-4b52-9d1c-{number:012}"),
                conn_info: r#"{"name":"Ada Lovelace"}"#.into(),
                ..ClientInfo::default()
            };
            redis.add(&channel, info, Duration::from_secs(600), Instant::now())
        };
        let answers: Vec<_> = (0..count).map(begin).collect();
        answers.into_iter().try_for_each(|answer| answer.wait().map_err(failed))?;
        let keys = ["ends", "members", "users"]
            .map(|kind| format!("fanwire.presence.{kind}.{{:{channel}}}"));
        let mut taken = 0;
        for key in keys {
            taken += bytes_of(server, &key)?;
        }
        println!("| presence of {count} members | {taken} ({} a member) |", taken / count);
    }
    Ok(())
}

/// What a channel costs to which one node is subscribed.
fn subscriptions(redis: &Redis, server: &RedisServer) -> Result<()> {
    let before = used(server)?;
    let names: Vec<String> = (0..SUBSCRIPTIONS).map(|number| format!("news:{number}")).collect();
    names.iter().for_each(|name| redis.subscribe(name));
    for name in &names {
        redis.follow(name, None, Retention::default(), Instant::now()).wait().map_err(failed)?;
    }
    let bytes = (used(server)? - before) / SUBSCRIPTIONS;
    println!("| one node's subscription to a channel | {bytes} |");
    Ok(())
}

fn failed(error: fanwire_broker::BrokerError) -> anyhow::Error {
    anyhow::anyhow!("{error:?}")
}

/// Bytes of a key, all of its fields counted.
fn bytes_of(server: &RedisServer, key: &str) -> Result<u64> {
    let answer = server.cli(&["MEMORY", "USAGE", key, "SAMPLES", "0"])?;
    answer.trim().parse().with_context(|| format!("{key} takes {answer:?}"))
}

/// Bytes that Redis has allocated.
fn used(server: &RedisServer) -> Result<u64> {
    let answer = server.cli(&["INFO", "memory"])?;
    let row = answer.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(row.context("INFO has no used_memory")?.trim().parse()?)
}

/// Enough to see one among what else Redis allocates.
const SUBSCRIPTIONS: u64 = 50_000;
