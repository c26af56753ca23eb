//! Prints what channels take of Redis, as the Redis engine stores them: stream, meta, presence in both forms, a subscription.
//! In: nothing; starts a `redis-server` of its own → out: a table with bytes per channel, member or subscription; renewals.
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
    let options = RedisOptions { addresses, presence_fields: false, ..RedisOptions::default() };
    runtime.block_on(Redis::check(&options))?;
    let redis = Redis::start(&options, runtime.handle());
    let with_fields = RedisOptions { prefix: "fields".into(), presence_fields: true, ..options };
    let fields = Redis::start(&with_fields, runtime.handle());
    println!("| in Redis | bytes |\n|---|---|");
    streams(&redis, &server)?;
    members(&redis, &server, &SORTED)?;
    let has_fields = members(&fields, &server, &FIELDS)?;
    subscriptions(&redis, &server)?;
    if has_fields {
        renewals(&redis, &fields, &server)?;
    }
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

/// A way to keep members: the prefix of the engine that has it, and what it keeps.
struct Form {
    name: &'static str,
    prefix: &'static str,
    kinds: &'static [&'static str],
}

const SORTED: Form =
    Form { name: "sorted set", prefix: "fanwire", kinds: &["ends", "members", "users"] };
const FIELDS: Form = Form { name: "hash fields", prefix: "fields", kinds: &["clients", "tallies"] };

/// Channels with members, each a user of its own with 24 bytes of info; false when the Redis lacks this form.
fn members(redis: &Redis, server: &RedisServer, form: &Form) -> Result<bool> {
    let Form { name, prefix, kinds } = form;
    for count in [10, 1_000] {
        let channel = format!("room:{count}");
        renew(redis, &channel, (count, count))?;
        let keys = kinds.iter().map(|kind| format!("{prefix}.presence.{kind}.{{:{channel}}}"));
        let mut taken = 0;
        for key in keys {
            if server.cli(&["EXISTS", &key])?.trim() == "0" {
                println!("| presence of {count} members, {name} | this Redis lacks it |");
                return Ok(false);
            }
            taken += bytes_of(server, &key)?;
        }
        println!("| presence of {count} members, {name} | {taken} ({} a member) |", taken / count);
    }
    Ok(true)
}

/// Adds members or renews them, all at once; so many of so many users.
fn renew(redis: &Redis, channel: &str, (count, users): (u64, u64)) -> Result<()> {
    let begin = |number: u64| {
        let info = ClientInfo {
            user: format!("user-{}", number % users),
            client: format!("5f1b0f4c-3a8e-4b52-9d1c-{number:012}"),
            conn_info: r#"{"name":"Ada Lovelace"}"#.into(),
            ..ClientInfo::default()
        };
        redis.add(channel, info, Duration::from_secs(600), Instant::now())
    };
    let answers: Vec<_> = (0..count).map(begin).collect();
    answers.into_iter().try_for_each(|answer| answer.wait().map_err(failed))
}

/// What a renewal takes of the processor of Redis, in both forms, in turns.
fn renewals(sorted: &Redis, fields: &Redis, server: &RedisServer) -> Result<()> {
    println!("\nProcessor time of Redis for a renewal, the median of {ROUNDS} rounds in turns:\n");
    println!(
        "| members | users | µs, sorted set | µs, hash fields | ratio |\n|---|---|---|---|---|"
    );
    for (count, users) in [(10, 10), (1_000, 1_000), (20_000, 20_000), (20_000, 1)] {
        let channel = format!("renewed:{count}:{users}");
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=ROUNDS {
            for (redis, times) in [sorted, fields].into_iter().zip(&mut times) {
                let before = processor_us(server)?;
                let repeats = 20_000 / count;
                (0..repeats).try_for_each(|_| renew(redis, &channel, (count, users)))?;
                let taken = (processor_us(server)? - before) / (repeats * count) as f64;
                if round > 0 {
                    times.push(taken); // the first adds them
                }
            }
        }
        let [sorted, fields] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!("| {count} | {users} | {sorted:.1} | {fields:.1} | {:.2} |", fields / sorted);
    }
    Ok(())
}

/// µs of processor time that Redis took until now.
fn processor_us(server: &RedisServer) -> Result<f64> {
    let answer = server.cli(&["INFO", "cpu"])?;
    let mut us = 0.0;
    for name in ["used_cpu_user:", "used_cpu_sys:"] {
        let row = answer.lines().find_map(|line| line.strip_prefix(name));
        us += row.context("INFO has no processor time")?.trim().parse::<f64>()? * 1e6;
    }
    Ok(us)
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

const ROUNDS: usize = 5;
/// Enough to see one among what else Redis allocates.
const SUBSCRIPTIONS: u64 = 50_000;
