//! Scenario `refusals`: what ten thousand refused commands per second cost, next to as many that are accepted.
//! In: clients and a rate → out: CPU of the server for both, the share of logging, and log lines per minute.
//! Uses `target` and `generator`; each command is a publish, into a channel that allows it or one that does not.
//! Change here what is compared and shown; which lines are logged is the server's business.

use anyhow::{Result, ensure};
use clap::Args;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::setup::Setup;
use crate::stats::{grouped, median, verdict};
use crate::target::Target;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::{Generator, Profile, PublicationHandler, StallTimer};
use fanwire_load::machine::{self, Meter};

/// Commands that are refused next to commands that are accepted.
#[derive(Args)]
pub struct Refusals {
    #[arg(long, default_value_t = 200)]
    clients: usize,
    /// Commands per second of all clients.
    #[arg(long, default_value_t = 10_000)]
    rate: u32,
    /// Measured seconds of each in each round.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Fail when refusals take more of a core than accepted commands by more than this share.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Contender {
    Accepted,
    /// With `log.level` none.
    Silent,
    /// With `log.level` info, the default.
    Logged,
}

struct Outcome {
    /// Of the server's core.
    cpu_share: f64,
    lines_per_minute: f64,
}

impl Refusals {
    /// True when the bar is met or none was set.
    ///
    /// # Errors
    /// A server that does not start, or clients without replies for ten seconds.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        let binary = self.setup.binary()?;
        println!(
            "refusals: {} commands/s of {} clients, {} rounds of {} s; server on core {}\n\n{HEADER}",
            grouped(self.rate.into()),
            self.clients,
            self.rounds,
            self.seconds,
            self.setup.server_core,
        );
        let mut outcomes = Vec::new();
        for number in 1..=self.rounds {
            for contender in [Contender::Accepted, Contender::Silent, Contender::Logged] {
                let outcome = self.measure(&binary, contender)?;
                println!(
                    "{number:>5}  {:<10} {:>6.2} {:>13.0}",
                    format!("{contender:?}"),
                    outcome.cpu_share * 100.0,
                    outcome.lines_per_minute,
                );
                outcomes.push((contender, outcome.cpu_share));
            }
        }
        let of = |contender| {
            median(
                outcomes.iter().filter(|(other, _)| *other == contender).map(|(_, share)| *share),
            )
        };
        let [accepted, silent, logged] =
            [Contender::Accepted, Contender::Silent, Contender::Logged].map(of);
        let passed = self.bar.is_none_or(|bar| logged - accepted <= bar);
        println!(
            "\nof a core: refused - accepted {:+.3}, of that logging {:+.3}{}",
            logged - accepted,
            logged - silent,
            verdict(self.bar, passed),
        );
        Ok(passed)
    }

    fn measure(&self, binary: &Path, contender: Contender) -> Result<Outcome> {
        let level = if contender == Contender::Logged { "info" } else { "none" };
        let settings = serde_json::json!({
            "log": { "level": level },
            "channel": { "namespaces": [
                { "name": "allowed", "allow_publish_for_client": true, "allow_publish_for_anonymous": true },
                { "name": "refused" },
            ]},
        });
        let target = Target::with_settings(binary, Some(self.setup.server_core), settings)?;
        let mut generator = Generator::new(false)?;
        let profile = Profile {
            plain: false,
            encoding: Encoding::Json,
            compression: false,
            channels: vec!["quiet".to_owned()],
        };
        generator.open(target.address(), self.clients, &profile)?;
        let channel = if contender == Contender::Accepted { "allowed:x" } else { "refused:x" };
        let mut run = Run {
            command: Encoding::Json.publish_command(9, channel, br#"{"text":"hello"}"#),
            is_refused: contender != Contender::Accepted,
            generator,
            replies: Replies::default(),
        };
        run.send_for(Duration::from_secs(2), self)?;
        let lines = target.log_lines();
        let meter = Meter::start(target.pid(), self.setup.server_core)?;
        run.send_for(Duration::from_secs_f64(self.seconds), self)?;
        let usage = meter.stop()?;
        Ok(Outcome {
            cpu_share: usage.cpu_seconds / usage.wall_seconds,
            lines_per_minute: (target.log_lines() - lines) as f64 / usage.wall_seconds * 60.0,
        })
    }
}

struct Run {
    generator: Generator,
    command: Vec<u8>,
    is_refused: bool,
    replies: Replies,
}

impl Run {
    /// Sends commands at the rate, each by the next client, and waits for all replies.
    fn send_for(&mut self, stretch: Duration, plan: &Refusals) -> Result<()> {
        let started = Instant::now();
        let (mut sent, before) = (0, self.replies);
        let mut progress = StallTimer::default();
        loop {
            let elapsed = started.elapsed().min(stretch);
            let due = (elapsed.as_secs_f64() * f64::from(plan.rate)) as u64;
            while sent < due {
                self.generator.send((sent % plan.clients as u64) as usize, &self.command)?;
                sent += 1;
            }
            let answered = self.replies.all - before.all;
            if elapsed == stretch && answered == sent {
                let refused = self.replies.refused - before.refused;
                ensure!(refused == if self.is_refused { sent } else { 0 }, "{refused} refused");
                return Ok(());
            }
            self.generator.turn(Some(Duration::ZERO), &mut self.replies)?;
            progress.check(self.replies.all, || "clients get no replies".to_owned())?;
        }
    }
}

/// What clients received.
#[derive(Clone, Copy, Default)]
struct Replies {
    all: u64,
    refused: u64,
}

impl PublicationHandler for Replies {
    fn publication(&mut self, _client: usize, message: &[u8]) -> Result<()> {
        self.all += 1;
        self.refused += u64::from(message.windows(ERROR.len()).any(|part| part == ERROR));
        Ok(())
    }
}

const ERROR: &[u8] = br#""error":"#;
const HEADER: &str = "round  commands    CPU %   lines/minute";
