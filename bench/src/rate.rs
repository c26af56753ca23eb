//! Scenario `rate`: publications at a fixed rate, as games and markets send them, with subscribers that are slow or stopped.
//! In: subscribers, rate, messages → out: server CPU, latency from the planned time and memory, next to the bare loop.
//! Uses `run` for each measurement; every subscriber that fell behind must end with the newest publication.
//! Change here what is compared and shown; how one contender is measured lives in `run`.

use anyhow::{Context, Result, ensure};
use clap::Args;
use std::path::PathBuf;

use crate::corpus::files;
use crate::setup::Setup;
use crate::stats::median;
use crate::target::API_KEY;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::publish_request;
use fanwire_load::machine;
use run::{Outcome, Plan, Publication};

mod run;

/// Publications at a fixed rate to subscribers of which some are slow or stopped, with `delivery: latest`.
#[derive(Args)]
pub struct Rate {
    /// Subscribers in all.
    #[arg(long, default_value_t = 500)]
    subscribers: usize,
    /// Publications per second.
    #[arg(long, default_value_t = 60.0)]
    hz: f64,
    /// So many of them read nothing until the end.
    #[arg(long, default_value_t = 50)]
    stopped: usize,
    /// So many of them read `--slow-bytes` per second.
    #[arg(long, default_value_t = 50)]
    slow: usize,
    #[arg(long, default_value_t = 65_536)]
    slow_bytes: usize,
    /// Messages to publish: `*.jsonl` a JSON text a line, `*.bin` bytes with their length before each (u32, little-endian),
    /// to subscribers that speak Protobuf.
    #[arg(long, value_name = "FILE")]
    corpus: PathBuf,
    /// Measured seconds of each contender in each round.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    setup: Setup,
}

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    Bare,
    /// Without compression.
    Raw,
    /// With compression in context.
    Context,
    /// As `Raw`, with the slow and the stopped subscribers.
    WithSlow,
}

impl Contender {
    const ALL: [Self; 4] = [Self::Bare, Self::Raw, Self::Context, Self::WithSlow];

    fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare loop",
            Self::Raw => "fanwire",
            Self::Context => "fanwire, compressed",
            Self::WithSlow => "fanwire, some slow",
        }
    }
}

impl Rate {
    /// # Errors
    /// A server that does not start, anything wrong that a subscriber receives, or one without the newest publication.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        let binary = self.setup.binary()?;
        let (is_binary, messages) = files::read(&self.corpus)?
            .with_context(|| format!("{}: neither *.jsonl nor *.bin", self.corpus.display()))?;
        ensure!(
            self.stopped + self.slow < self.subscribers,
            "--subscribers {}: at least one more than --stopped and --slow",
            self.subscribers
        );
        ensure!(!messages.is_empty(), "{}: no message", self.corpus.display());
        let publications = messages.into_iter().map(|data| {
            let field = files::payload(is_binary, &data);
            Publication { request: publish_request(run::CHANNEL, &field, API_KEY), data }
        });
        let plan = Plan {
            binary: &binary,
            publications: &publications.collect::<Vec<_>>(),
            encoding: if is_binary { Encoding::Protobuf } else { Encoding::Json },
            subscribers: self.subscribers,
            hz: self.hz,
            stopped: self.stopped,
            slow: self.slow,
            slow_bytes: self.slow_bytes,
            seconds: self.seconds,
            server_core: self.setup.server_core,
        };
        println!(
            "rate: {} subscribers, {} Hz of {}, {} rounds of {} s; some slow: {} stopped, {} at {} B/s\n\n{HEADER}",
            self.subscribers,
            self.hz,
            self.corpus.display(),
            self.rounds,
            self.seconds,
            self.stopped,
            self.slow,
            self.slow_bytes,
        );
        let mut outcomes = Vec::new();
        for number in 1..=self.rounds {
            for contender in Contender::ALL {
                let outcome = plan.measure(contender)?;
                println!("{number:>5}  {}", row(contender, &outcome));
                outcomes.push((contender, outcome));
            }
        }
        show_ratios(&outcomes);
        Ok(true)
    }
}

fn row(contender: Contender, outcome: &Outcome) -> String {
    format!(
        "{:<20} {:>8.1} {:>8.2} {:>8.2} {:>11.1} {:>10.0} {:>12} {:>9} {:>9.1}",
        contender.name(),
        outcome.cpu_share * 100.0,
        outcome.latency_p50_ms,
        outcome.latency_p99_ms,
        outcome.bytes_per_delivery,
        outcome.resident_growth / 1024.0,
        outcome.received_by_stopped,
        outcome.received_by_slow,
        outcome.others_share * 100.0,
    )
}

fn show_ratios(outcomes: &[(Contender, Outcome)]) {
    let of = |contender: Contender, figure: fn(&Outcome) -> f64| {
        let own = outcomes.iter().filter(|(other, _)| *other == contender);
        median(own.map(|(_, outcome)| figure(outcome)))
    };
    println!();
    for (over, under) in [
        (Contender::Raw, Contender::Bare),
        (Contender::Context, Contender::Bare),
        (Contender::Context, Contender::Raw),
        (Contender::WithSlow, Contender::Raw),
    ] {
        let ratio = |figure| of(over, figure) / of(under, figure);
        println!(
            "{} / {}: CPU {:.2}, p99 {:.2}, bytes {:.3}",
            over.name(),
            under.name(),
            ratio(|outcome| outcome.cpu_share),
            ratio(|outcome| outcome.latency_p99_ms),
            ratio(|outcome| outcome.bytes_per_delivery),
        );
    }
}

const HEADER: &str = "round  contender               CPU %   p50 ms   p99 ms  B/delivery  growth KiB  per stopped  per slow  others %";
