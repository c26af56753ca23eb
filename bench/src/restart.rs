//! Scenario `restart`: a server with a full memory engine and a snapshot stops and starts, and delivers while snapshots are written.
//! In: numbers of channels and publications → out: seconds of a stop and a start, latencies without a snapshot and during snapshots.
//! Uses `target` and `witness`. Never: connections that recover, which `connects --missed` has.
//! Changed here: what is in memory. How latencies are measured is in `witness`.

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use std::cmp::Ordering::Less;
use std::fs;
use std::thread;
use std::time::Duration;

use crate::caller::Caller;
use crate::fanout::made_up_payloads;
use crate::setup::Setup;
use crate::stats::{grouped, judge, median, percentile};
use crate::target::{API_KEY, Target, history, merge};
use crate::witness::{Witness, print_latencies};
use fanwire_load::generator::publisher::{answer_length, http_request};
use fanwire_load::machine;

/// Seconds until a server with a snapshot has stopped and started, and latencies of deliveries while snapshots are written.
#[derive(Args)]
pub struct Restart {
    /// Channels with a history.
    #[arg(long, default_value_t = 100_000)]
    channels: usize,
    /// Publications of each.
    #[arg(long, default_value_t = 10)]
    publications: usize,
    /// Bytes of each publication's data.
    #[arg(long, default_value_t = 100)]
    bytes: usize,
    /// Measured seconds of each part.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Rounds, each with a stop and a start before both parts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Fail when the median of the ratios of p99 is above this.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

impl Restart {
    /// True when the bar is met or none was set.
    ///
    /// # Errors
    /// A server that does not start or answer, or a delivery that does not come.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        let binary = self.setup.binary()?;
        let mut target = Target::fanwire(&binary, None, json!({}))?;
        target.stop()?;
        target.start_again(&binary, self.settings(&target, "1h")?)?;
        self.fill(&target)?;
        let channels = grouped(self.channels as f64);
        println!("restart: {channels} channels with {} publications each\n", self.publications);
        let mut ratios = Vec::new();
        for _ in 0..self.rounds {
            let quiet = self.part(&mut target, "without a snapshot", "1h")?;
            let busy = self.part(&mut target, "with snapshots", "1s")?;
            println!("ratio of p99: {:.2}", busy / quiet);
            ratios.push(busy / quiet);
        }
        let ratio = median(ratios);
        let (is_met, verdict) = judge(ratio, Less, self.bar);
        println!("\nmedian of the ratios: {ratio:.2}{verdict}");
        Ok(is_met)
    }

    fn settings(&self, target: &Target, interval: &str) -> Result<Value> {
        let path = target.folder()?.join("snapshot");
        let memory = json!({ "snapshot_path": path, "snapshot_interval": interval });
        let mut settings = history(self.publications);
        merge(&mut settings, json!({ "engine": { "memory": memory } }));
        Ok(settings)
    }

    /// Publishes in a thousand channels at once.
    fn fill(&self, target: &Target) -> Result<()> {
        let mut caller = Caller::open(target.address())?;
        let data = made_up_payloads(self.bytes);
        let names: Vec<String> = (0..self.channels).map(|number| format!("c{number}")).collect();
        for channels in names.chunks(1_000) {
            for number in 0..self.publications {
                let channels = serde_json::to_string(channels)?;
                let body =
                    format!("{{\"channels\":{channels},\"data\":{}}}", data[number % data.len()]);
                caller.send(&http_request("broadcast", &body, API_KEY))?;
                let answer = caller.take(answer_length)?;
                ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{}", answer.escape_ascii());
            }
        }
        Ok(())
    }

    /// Stops and starts the server, and returns the p99 of its deliveries.
    fn part(&self, target: &mut Target, name: &str, interval: &str) -> Result<f64> {
        let stopped = target.stop()?;
        let bytes = fs::metadata(target.folder()?.join("snapshot"))?.len();
        let settings = self.settings(target, interval)?;
        let started = target.start_again(&self.setup.binary()?, settings)?;
        println!(
            "{:.1} MB: stopped in {:.2} s, started in {:.2} s",
            bytes as f64 / 1e6,
            stopped.as_secs_f64(),
            started.as_secs_f64()
        );
        let latencies = self.latencies(target)?;
        print_latencies(name, &latencies);
        Ok(percentile(&latencies, 0.99))
    }

    fn latencies(&self, target: &Target) -> Result<Vec<f64>> {
        let witness = Witness::open(target.address(), SUBSCRIBERS)?;
        let ((), [_, latencies]) = witness.during(|| {
            thread::sleep(Duration::from_secs_f64(self.seconds));
            Ok(())
        })?;
        Ok(latencies)
    }
}

const SUBSCRIBERS: usize = 100;
