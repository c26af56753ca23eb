//! Scenario `presence`: how long deliveries take while the members of a large channel are asked for, and while not.
//! In: members, subscribers, rates → out: a table with the latencies of every delivery; not passed above `--bar`.
//! Uses `generator` for members and subscribers and `asker` for the questions; all are connections of one shard.
//! Change here what is compared and shown; how a question is asked lives in `asker`.

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use std::time::{Duration, Instant};

use crate::setup::Setup;
use crate::stats::{grouped, median, percentile, verdict};
use crate::target::{API_KEY, Target};
use asker::{Asker, Face};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::{Publisher, publish_request};
use fanwire_load::generator::{Generator, Profile, PublicationHandler, StallTimer};
use fanwire_load::machine;

pub mod asker;

/// Latency of deliveries while the presence of a large channel is asked for, as a ratio to that without.
#[derive(Args)]
pub struct Presence {
    /// Members of the channel that is asked for.
    #[arg(long, default_value_t = 10_000)]
    members: usize,
    /// Subscribers of the channel that is published to.
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// Publications per second.
    #[arg(long, default_value_t = 50.0)]
    rate: f64,
    /// Questions per second, each by the API and by a client.
    #[arg(long, default_value_t = 5.0)]
    asks: f64,
    /// Who asks; by default both do.
    #[arg(long)]
    by: Option<By>,
    /// The client that asks negotiates permessage-deflate.
    #[arg(long)]
    compression: bool,
    /// Measured seconds with and without questions, in each round.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Fail when the median ratio of the p99 is above this.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum By {
    Api,
    Client,
}

impl Presence {
    /// True when the bar is met or none was set.
    ///
    /// # Errors
    /// A server that does not start, or anything wrong that a subscriber or an asker receives.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        let binary = self.setup.binary()?;
        let channel = serde_json::json!({
            "presence": true,
            "allow_presence_for_client": true,
            "allow_presence_for_anonymous": true,
        });
        let target = Target::configured(&binary, Some(self.setup.server_core), channel)?;
        println!(
            "presence: {} members asked for {} times a second by {}, {} subscribers, {} publications/s; \
             compression {}, server on core {}, generator on core {}",
            grouped(self.members as f64),
            self.asks,
            self.by.map_or("Api and by Client".to_owned(), |by| format!("{by:?}")),
            grouped(self.subscribers as f64),
            self.rate,
            if self.compression { "on" } else { "off" },
            self.setup.server_core,
            self.setup.generator_core,
        );
        let ratios = self.measure(&target);
        let ratios = ratios.with_context(|| format!("server log:\n{}", target.log_tail()))?;
        Ok(self.judge(ratios))
    }

    /// The ratio of each round's p99.
    fn measure(&self, target: &Target) -> Result<Vec<f64>> {
        let mut generator = Generator::new(false)?;
        let profile = |channel: &str| Profile {
            plain: false,
            encoding: Encoding::Json,
            compression: false,
            channels: vec![channel.to_owned()],
        };
        generator.open(target.address(), self.members, &profile(CROWD))?;
        generator.open(target.address(), self.subscribers, &profile(NEWS))?;
        let publisher = Publisher::http(target.address(), 1, generator.registry())?;
        let deliveries = Deliveries::new(self.members, self.subscribers);
        let mut run = Run { rate: self.rate, generator, publisher, deliveries };
        run.publish_for(Duration::from_secs(1))?;
        println!("\n{HEADER}");
        let mut ratios = Vec::new();
        for round in 1..=self.rounds {
            let quiet = run.publish_for(self.stretch())?;
            println!("{round:>5}  {}", row("without questions", &quiet));
            let asking = self.asked(target, &mut run)?;
            println!("{round:>5}  {}", row("with questions", &asking));
            ratios.push(percentile(&asking, 0.99) / percentile(&quiet, 0.99));
        }
        Ok(ratios)
    }

    /// The latencies while the askers ask.
    fn asked(&self, target: &Target, run: &mut Run) -> Result<Vec<f64>> {
        let faces =
            [(By::Api, Face::Api), (By::Client, Face::Client { compression: self.compression })];
        let wanted = faces.into_iter().filter(|(by, _)| self.by.is_none_or(|only| only == *by));
        let ask =
            |(by, face)| Ok((by, Asker::start(target.address(), face, self.asks, self.members)?));
        let askers = wanted.map(ask).collect::<Result<Vec<_>>>()?;
        let latencies = run.publish_for(self.stretch())?;
        for (by, asker) in askers {
            let answers = asker.stop().with_context(|| format!("asking by {by:?}"))?;
            ensure!(!answers.is_empty(), "no question by {by:?} was answered");
            let median = median(answers.iter().copied());
            println!("       {by:?}: {} answers, median {median:.2} ms", answers.len());
        }
        Ok(latencies)
    }

    fn stretch(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    fn judge(&self, ratios: Vec<f64>) -> bool {
        let ratio = median(ratios);
        let passed = self.bar.is_none_or(|bar| ratio <= bar);
        let verdict = verdict(self.bar, passed);
        println!("\nratio of the p99 of deliveries, with questions / without: {ratio:.3}{verdict}");
        passed
    }
}

struct Run {
    rate: f64,
    generator: Generator,
    publisher: Publisher,
    deliveries: Deliveries,
}

impl Run {
    /// Publishes at the rate for this long, then waits until everything has arrived; the latencies in milliseconds.
    fn publish_for(&mut self, stretch: Duration) -> Result<Vec<f64>> {
        let started = Instant::now();
        let count = (stretch.as_secs_f64() * self.rate) as usize;
        let request = publish_request(NEWS, r#""data":{"text":"what happened"}"#, API_KEY);
        let mut progress = StallTimer::default();
        let mut sent = 0;
        while sent < count || !self.deliveries.is_complete() || !self.publisher.is_idle() {
            let due = started + Duration::from_secs_f64(sent as f64 / self.rate);
            if sent < count && due <= Instant::now() && self.publisher.has_free_lane() {
                self.publisher.publish(&request)?;
                // From when it was due: a late publication is late for its readers, too.
                self.deliveries.published.push(due);
                sent += 1;
            }
            if self.generator.turn(Some(Duration::ZERO), &mut self.deliveries)? {
                self.publisher.receive()?;
            }
            let moved = (self.deliveries.latencies_ms.len() + sent) as u64;
            progress.check(moved, || format!("{moved} publications and deliveries"))?;
        }
        Ok(std::mem::take(&mut self.deliveries.latencies_ms))
    }
}

/// Takes the time of every delivery: a subscriber gets the publications in order, so the next one is known.
struct Deliveries {
    /// Connections that are members and hear nothing.
    members: usize,
    published: Vec<Instant>,
    /// By subscriber, how many publications it has.
    received: Vec<usize>,
    total: usize,
    latencies_ms: Vec<f64>,
}

impl Deliveries {
    fn new(members: usize, subscribers: usize) -> Self {
        let received = vec![0; subscribers];
        Self { members, published: Vec::new(), received, total: 0, latencies_ms: Vec::new() }
    }

    fn is_complete(&self) -> bool {
        self.total == self.published.len() * self.received.len()
    }
}

impl PublicationHandler for Deliveries {
    fn publication(&mut self, number: usize, message: &[u8]) -> Result<()> {
        let subscriber = number.checked_sub(self.members);
        let subscriber = subscriber.with_context(|| {
            format!("member {number} heard {}", String::from_utf8_lossy(message))
        })?;
        let published = self.published.get(self.received[subscriber]);
        let published = published.context("more was received than published")?;
        self.latencies_ms.push(published.elapsed().as_secs_f64() * 1e3);
        self.received[subscriber] += 1;
        self.total += 1;
        Ok(())
    }
}

fn row(what: &str, latencies_ms: &[f64]) -> String {
    let share = |share| percentile(latencies_ms, share);
    format!(
        "{what:<18} {:>12} {:>9.3} {:>9.3} {:>9.3}",
        grouped(latencies_ms.len() as f64),
        share(0.5),
        share(0.99),
        share(1.0),
    )
}

const HEADER: &str = "round                       deliveries    p50 ms    p99 ms    max ms";
const CROWD: &str = "crowd";
const NEWS: &str = "news";

#[cfg(test)]
mod tests;
