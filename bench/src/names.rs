//! Scenario `names`: clients subscribe to very many channels, and leave each; what becomes of the histories of others.
//! In: an engine, numbers of channels → out: a table of what is kept and what it takes; not passed when a publication is lost.
//! Uses `caller` for clients and the API, `metrics` and `machine` for memory, `redis` for a Redis of the run's own.
//! Change here what is played and judged; what a client sends is in `names/client.rs`.

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

use crate::broadcast::Engine;
use crate::caller::Caller;
use crate::metrics;
use crate::redis::RedisServer;
use crate::setup::Setup;
use crate::stats::grouped;
use crate::target::{API_KEY, Target};
use client::Client;
use fanwire_load::generator::publisher::{answer_length, http_request, publish_request};
use fanwire_load::machine;

pub mod client;

/// Histories and memory while clients subscribe with positions to very many channels without publications.
#[derive(Args)]
pub struct Names {
    /// What holds the histories. Redis is started for the run.
    #[arg(long, default_value = "memory")]
    engine: Engine,
    /// Channels that the clients subscribe to and leave.
    #[arg(long, default_value_t = 400_000)]
    names: usize,
    /// Clients, each with a part of the names.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Channels with a full history.
    #[arg(long, default_value_t = 20)]
    channels: usize,
    /// Publications in each of these.
    #[arg(long, default_value_t = 100)]
    publications: usize,
    /// Bytes of the data, which is JSON.
    #[arg(long, default_value_t = 1_000)]
    bytes: usize,
    /// `channel.history_memory_max`: the server's memory may grow by so much.
    #[arg(long, default_value_t = 50_000_000)]
    history_memory_max: u64,
    /// Seconds after the last subscription in which Redis has to forget.
    #[arg(long, default_value_t = 60.0)]
    forget: f64,
    #[command(flatten)]
    setup: Setup,
}

/// What is kept at one moment, and what it takes.
struct State {
    history_bytes: f64,
    resident_bytes: u64,
    /// Keys in Redis, where there is one.
    keys: Option<usize>,
}

impl Names {
    /// True when every publication is kept, memory stays within the limit, and Redis has forgotten every name.
    ///
    /// # Errors
    /// A server that does not start, or an answer that is an error.
    pub fn run(self) -> Result<bool> {
        self.setup.pin_generator()?;
        let redis = match self.engine {
            Engine::Memory => None,
            Engine::Redis => Some(RedisServer::start(Some(self.setup.generator_core))?),
        };
        let engine = redis.as_ref().map_or(json!({ "type": "memory" }), RedisServer::engine);
        let settings = json!({
            "engine": engine,
            "channel": {
                "history_memory_max": self.history_memory_max,
                "without_namespace": {
                    "history_size": self.publications,
                    "history_ttl": "1h",
                    "force_positioning": true,
                },
            },
        });
        let binary = self.setup.binary()?;
        let target = Target::with_settings(&binary, Some(self.setup.server_core), settings)?;
        println!(
            "names: {:?} engine, {} channels with {} publications of {} B, {} names subscribed and left\n",
            self.engine,
            self.channels,
            self.publications,
            grouped(self.bytes as f64),
            grouped(self.names as f64),
        );
        let passed = self.play(&target, redis.as_ref());
        passed.with_context(|| format!("server log:\n{}", target.log_tail()))
    }

    fn play(&self, target: &Target, redis: Option<&RedisServer>) -> Result<bool> {
        self.fill(target)?;
        println!("{HEADER}");
        let before = self.state(target, redis)?;
        println!("{}", row("before", &before));
        let started = Instant::now();
        self.come_and_go(target)?;
        let seconds = started.elapsed().as_secs_f64();
        println!("{}", row(&format!("after {seconds:.1} s"), &self.state(target, redis)?));
        if redis.is_some() {
            thread::sleep(Duration::from_secs_f64(self.forget));
            let after = self.state(target, redis)?;
            println!("{}", row(&format!("{:.0} s later", self.forget), &after));
        }
        Ok(self.judge(&before, &self.state(target, redis)?, self.stored(target)?))
    }

    /// Publishes into the channels that have a history.
    fn fill(&self, target: &Target) -> Result<()> {
        let mut caller = Caller::open(target.address())?;
        let data = format!(r#""data":"{}""#, "x".repeat(self.bytes.saturating_sub(2)));
        for number in 0..self.channels * self.publications {
            let request = publish_request(&full(number % self.channels), &data, API_KEY);
            caller.send(&request)?;
            caller.take(answer_length)?;
        }
        Ok(())
    }

    /// Shares the names among the clients, each of which has a thread of its own.
    fn come_and_go(&self, target: &Target) -> Result<()> {
        let client = |first: usize| -> Result<()> {
            let mut client = Client::open(target.address())?;
            for at in (first..self.names).step_by(self.clients * AT_ONCE) {
                client.come_and_go((at..self.names.min(at + AT_ONCE)).map(name))?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let begin = |number| scope.spawn(move || client(number * AT_ONCE));
            let threads: Vec<_> = (0..self.clients).map(begin).collect();
            for thread in threads {
                thread.join().map_err(|_| anyhow!("a client's thread has failed"))??;
            }
            Ok(())
        })
    }

    /// The publications of all channels with a history. Only asked for at the end, because what is read is used.
    fn stored(&self, target: &Target) -> Result<usize> {
        let mut caller = Caller::open(target.address())?;
        let mut publications = 0;
        for number in 0..self.channels {
            let body = json!({ "channel": full(number), "limit": -1 }).to_string();
            caller.send(&http_request("history", &body, API_KEY))?;
            let answer = String::from_utf8(caller.take(answer_length)?)?;
            publications += answer.matches(r#""data":"#).count();
        }
        Ok(publications)
    }

    fn state(&self, target: &Target, redis: Option<&RedisServer>) -> Result<State> {
        let keys = |redis: &RedisServer| -> Result<usize> {
            redis.cli(&["DBSIZE"])?.trim().parse().context("a number of keys")
        };
        let page = metrics::page(target.address())?;
        Ok(State {
            history_bytes: metrics::value(&page, "fanwire_node_history_bytes")?,
            resident_bytes: machine::resident_bytes(target.pid())?,
            keys: redis.map(keys).transpose()?,
        })
    }

    fn judge(&self, before: &State, after: &State, stored: usize) -> bool {
        let published = self.channels * self.publications;
        let grown = after.resident_bytes.saturating_sub(before.resident_bytes);
        let checks = [
            ("every publication is kept", stored == published),
            ("histories take what they took", after.history_bytes <= before.history_bytes),
            ("memory grew by no more than the limit", grown <= self.history_memory_max),
            ("Redis has no key of a name", after.keys == before.keys),
        ];
        println!("\n{} of {} publications", grouped(stored as f64), grouped(published as f64));
        for (what, is_so) in checks {
            println!("{what}: {}", if is_so { "yes" } else { "NO" });
        }
        checks.iter().all(|(_, is_so)| *is_so)
    }
}

fn row(when: &str, state: &State) -> String {
    format!(
        "{when:<16} {:>15} {:>12.1} {:>11}",
        grouped(state.history_bytes),
        state.resident_bytes as f64 / 1e6,
        state.keys.map_or_else(|| "-".to_owned(), |keys| grouped(keys as f64)),
    )
}

/// A channel with a history.
fn full(number: usize) -> String {
    format!("full-{number}")
}

/// A channel without publications.
fn name(number: usize) -> String {
    format!("name-{number}")
}

const HEADER: &str = "when               history bytes  resident MB  Redis keys";
/// Subscriptions at once: fewer than `client.channel_limit`.
const AT_ONCE: usize = 100;
