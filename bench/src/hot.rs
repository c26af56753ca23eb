//! Scenario `hot`: the latency of a quiet channel, alone and next to one with very many publications.
//! In: rates and subscribers of both channels → out: p50 and p99 of the quiet one both times, and their ratio.
//! Uses `target` and `generator`; the hot channel is published to through `POST /api/stream`, at planned times.
//! Change here what is compared and shown; how a delivery is timed lives in `fanout::schedule`.

use anyhow::{Context, Result};
use clap::Args;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::fanout::made_up_payloads;
use crate::fanout::schedule::Ledger;
use crate::setup::Setup;
use crate::stats::{grouped, median, percentile, verdict};
use crate::target::{API_KEY, Target};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::{Publisher, publish_request};
use fanwire_load::generator::stream_publisher::StreamPublisher;
use fanwire_load::generator::{Deliveries, Generator, Profile, StallTimer};
use fanwire_load::machine;

/// The latency of a quiet channel next to a hot one, on one shard.
#[derive(Args)]
pub struct Hot {
    /// Publications per second in the hot channel.
    #[arg(long, default_value_t = 10_000)]
    hot_rate: u32,
    /// Subscribers of the hot channel.
    #[arg(long, default_value_t = 5)]
    hot_subscribers: usize,
    /// Publications per second in the quiet channel.
    #[arg(long, default_value_t = 50)]
    quiet_rate: u32,
    /// Subscribers of the quiet channel.
    #[arg(long, default_value_t = 10)]
    quiet_subscribers: usize,
    /// Bytes of the data.
    #[arg(long, default_value_t = 200)]
    bytes: usize,
    /// Measured seconds of each in each round.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Fail when the median ratio of the p99s is above this.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

/// Latencies of the quiet channel.
struct Outcome {
    p50_ms: f64,
    p99_ms: f64,
    /// Deliveries of the hot channel per second.
    hot_deliveries: f64,
}

impl Hot {
    /// True when the bar is met or none was set.
    ///
    /// # Errors
    /// A server that does not start, a wrong answer, or a delivery that is missing.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        let binary = self.setup.binary()?;
        println!(
            "hot: {} publications/s to {} subscribers, next to {}/s to {}, {} B, {} rounds of {} s; server on core {}\n\n{HEADER}",
            grouped(self.hot_rate.into()),
            self.hot_subscribers,
            self.quiet_rate,
            self.quiet_subscribers,
            self.bytes,
            self.rounds,
            self.seconds,
            self.setup.server_core,
        );
        let mut ratios = Vec::new();
        for number in 1..=self.rounds {
            let [alone, next_to] =
                [0, self.hot_rate].map(|hot_rate| self.measure(&binary, hot_rate));
            let (alone, next_to) = (alone?, next_to?);
            for (name, outcome) in [("alone", &alone), ("next to the hot one", &next_to)] {
                println!(
                    "{number:>5}  {name:<20} {:>8.2} {:>8.2} {:>18}",
                    outcome.p50_ms,
                    outcome.p99_ms,
                    grouped(outcome.hot_deliveries)
                );
            }
            ratios.push(next_to.p99_ms / alone.p99_ms);
        }
        let ratio = median(ratios);
        let passed = self.bar.is_none_or(|bar| ratio <= bar);
        let verdict = verdict(self.bar, passed);
        println!("\nratio of the quiet channel's p99, next to / alone: {ratio:.2}{verdict}");
        Ok(passed)
    }

    fn measure(&self, binary: &Path, hot_rate: u32) -> Result<Outcome> {
        let target = Target::fanwire(binary, Some(self.setup.server_core))?;
        let subscribers = |channel: &str, count: usize| -> Result<Generator> {
            let mut generator = Generator::new(false)?;
            let profile = Profile {
                plain: false,
                encoding: Encoding::Json,
                compression: false,
                channels: vec![channel.to_owned()],
            };
            generator.open(target.address(), count, &profile)?;
            Ok(generator)
        };
        let quiet = subscribers("quiet", self.quiet_subscribers)?;
        let field = format!("\"data\":{}", made_up_payloads(self.bytes)[0]);
        let mut run = Run {
            hot: subscribers("hot", self.hot_subscribers)?,
            publisher: Publisher::http(target.address(), 1, quiet.registry())?,
            quiet,
            stream: StreamPublisher::open(target.address(), "localhost", "/api/stream", API_KEY)?,
            ledger: Ledger::new(vec![vec![0]; self.quiet_subscribers]),
            hot_deliveries: Deliveries::default(),
            request: publish_request("quiet", &field, API_KEY),
            field,
        };
        let seconds = Duration::from_secs_f64(self.seconds);
        run.publish_for(WARM_UP, self.quiet_rate, hot_rate)?;
        run.ledger.latencies_ms.clear();
        let before = run.hot_deliveries.0;
        run.publish_for(seconds, self.quiet_rate, hot_rate)?;
        let hot_deliveries = (run.hot_deliveries.0 - before) as f64 / self.seconds;
        let latencies = &run.ledger.latencies_ms;
        let (p50_ms, p99_ms) = (percentile(latencies, 0.5), percentile(latencies, 0.99));
        Ok(Outcome { p50_ms, p99_ms, hot_deliveries })
    }
}

struct Run {
    quiet: Generator,
    hot: Generator,
    publisher: Publisher,
    stream: StreamPublisher,
    ledger: Ledger,
    hot_deliveries: Deliveries,
    /// A publication of the quiet channel.
    request: Vec<u8>,
    /// The data of the hot channel.
    field: String,
}

impl Run {
    /// Publishes to both channels at their planned times, then waits for the quiet one.
    fn publish_for(&mut self, stretch: Duration, quiet_rate: u32, hot_rate: u32) -> Result<()> {
        let quiet_period = Duration::from_secs(1) / quiet_rate;
        let started = Instant::now();
        let (mut quiet_at, mut hot_at) = (started, started);
        let hot_lines = (hot_rate / HOT_CHUNKS) as usize;
        let mut progress = StallTimer::default();
        loop {
            let now = Instant::now();
            let is_over = now >= started + stretch;
            if !is_over && now >= quiet_at && self.publisher.has_free_lane() {
                self.ledger.published(0, quiet_at);
                self.publisher.publish(&self.request)?;
                quiet_at += quiet_period;
            }
            if !is_over && hot_lines > 0 && now >= hot_at && self.stream.missing() < HOT_WAITING_MAX
            {
                let channels = std::iter::repeat_n("hot".to_owned(), hot_lines);
                self.stream.publish(channels, &self.field).context("the hot channel")?;
                hot_at += Duration::from_secs(1) / HOT_CHUNKS;
            }
            if is_over && self.ledger.open.is_empty() && self.stream.missing() == 0 {
                return Ok(());
            }
            if self.quiet.turn(Some(Duration::ZERO), &mut self.ledger)? {
                self.publisher.receive()?;
            }
            self.hot.turn(Some(Duration::ZERO), &mut self.hot_deliveries)?;
            self.stream.receive()?;
            progress.check(self.ledger.deliveries, || self.ledger.missing())?;
        }
    }
}

const WARM_UP: Duration = Duration::from_secs(1);
/// Chunks per second in which the hot channel is published to.
const HOT_CHUNKS: u32 = 1000;
/// A server that does not keep up gets no more than this.
const HOT_WAITING_MAX: usize = 10_000;
const HEADER: &str = "round  quiet channel          p50 ms   p99 ms   hot deliveries/s";
