//! Scenario `room`: a simulation whose players share one state, next to a bare loop that sends as many bytes at the same rate.
//! In: players, ticks per second, bytes, inputs → out: times of ticks, of the last player and of inputs, late ticks, bytes.
//! Uses `room::server` in a process of its own on the server's core, `generator` for the players.
//! Changed here: what is compared and shown; what the room does lives in `room::server`.

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::bare;
use crate::metrics;
use crate::setup::Setup;
use crate::stats::{median, percentile};
use crate::target::Target;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::Publisher;
use fanwire_load::generator::{Generator, Profile, PublicationHandler, StallTimer};
use fanwire_load::machine::{self, Meter};
use server::{CHANNEL, unix_us};

mod colyseus;
pub mod server;

/// A room at a fixed rate with players that all get one state and send inputs.
#[derive(Args)]
pub struct Room {
    #[arg(long, default_value_t = 500)]
    players: usize,
    #[arg(long, default_value_t = 60)]
    ticks_per_second: u32,
    #[arg(long, default_value_t = 2048)]
    state_bytes: usize,
    /// Inputs per second of each player.
    #[arg(long, default_value_t = 30)]
    inputs: u32,
    /// Inputs per second that one more player sends, of which its limit takes 100.
    #[arg(long, default_value_t = 0)]
    flood: u32,
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Build the state once for each player, instead of once for all.
    #[arg(long)]
    naive: bool,
    /// Measure Colyseus, too, with the programs in bench/colyseus.
    #[arg(long)]
    colyseus: bool,
    #[command(flatten)]
    setup: Setup,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Contender {
    Bare,
    Raw,
    Context,
}

#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) cpu_share: f64,
    /// Times from the start of a tick until the last player has it.
    pub(crate) last_p50_ms: f64,
    pub(crate) last_p99_ms: f64,
    bytes_per_player: f64,
    /// The counts of the room; `null` for the bare loop.
    pub(crate) report: Value,
    /// Publications, parses of both encodings.
    counted: Option<[f64; 2]>,
}

impl Room {
    /// 500 clients, 60 ticks per second, 2 KiB, 30 inputs per second and client.
    pub(crate) fn at_60_hz(setup: Setup, seconds: f64, naive: bool) -> Self {
        Self {
            players: 500,
            ticks_per_second: 60,
            state_bytes: 2048,
            inputs: 30,
            flood: 0,
            seconds,
            rounds: 1,
            naive,
            colyseus: false,
            setup,
        }
    }

    /// # Errors
    /// A server that does not start, or players that do not get a state for ten seconds.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        println!(
            "room: {} players, {} ticks per second of {} bytes, {} inputs per second and player, {} of one more\n\n{HEADER}",
            self.players, self.ticks_per_second, self.state_bytes, self.inputs, self.flood
        );
        let mut outcomes = Vec::new();
        for number in 1..=self.rounds {
            for contender in [Contender::Bare, Contender::Raw, Contender::Context] {
                let outcome = self.measure(contender)?;
                println!("{number:>5}  {}", row(contender, &outcome));
                outcomes.push((contender, outcome));
            }
        }
        let of = |contender: Contender, figure: fn(&Outcome) -> f64| {
            let own = outcomes.iter().filter(|(other, _)| *other == contender);
            median(own.map(|(_, outcome)| figure(outcome)))
        };
        for contender in [Contender::Raw, Contender::Context] {
            let ratio = |figure| of(contender, figure) / of(Contender::Bare, figure);
            let tick_p99 = of(contender, |outcome| number(&outcome.report, "tick_p99_us"));
            println!(
                "\n{contender:?} / Bare: CPU {:.2}, last player p50 {:.2}, p99 {:.2}, bytes {:.3}; tick p99 / time of the bare loop {:.2}",
                ratio(|outcome| outcome.cpu_share),
                ratio(|outcome| outcome.last_p50_ms),
                ratio(|outcome| outcome.last_p99_ms),
                ratio(|outcome| outcome.bytes_per_player),
                tick_p99 / 1e3 / of(Contender::Bare, |outcome| outcome.last_p50_ms),
            );
        }
        if self.colyseus {
            colyseus::run(&self)?;
        }
        Ok(true)
    }

    /// # Errors
    /// As those of [`run`](Self::run).
    pub(crate) fn measure(&self, contender: Contender) -> Result<Outcome> {
        let core = self.setup.server_core;
        let target = match contender {
            Contender::Bare => Target::bare(core, None)?,
            _ => Target::room(core, &self.server_arguments(contender))?,
        };
        let mut generator = Generator::new(true)?;
        let publisher = match contender {
            Contender::Bare => Some(Publisher::bare(target.address(), generator.registry())?),
            _ => None,
        };
        let profile = Profile {
            plain: contender == Contender::Bare,
            encoding: Encoding::Json,
            compression: contender == Contender::Context,
            channels: vec![CHANNEL.to_owned()],
        };
        let players = self.players + usize::from(self.flood > 0);
        generator.open(target.address(), players, &profile)?;
        let mut run = Run { plan: self, generator, publisher, seen: Seen::new(players) };
        run.report()?;
        run.play(Duration::from_secs(2))?;
        run.report()?;
        let before = run.counted(&target)?;
        run.seen.last_ms.clear();
        let bytes = run.generator.bytes_received();
        let meter = Meter::start(target.pid(), core)?;
        run.play(Duration::from_secs_f64(self.seconds))?;
        let usage = meter.stop()?;
        let bytes = (run.generator.bytes_received() - bytes) as f64;
        let after = run.counted(&target)?;
        let counted =
            before.zip(after).map(|(before, after)| [after[0] - before[0], after[1] - before[1]]);
        Ok(Outcome {
            cpu_share: usage.cpu_seconds / usage.wall_seconds,
            last_p50_ms: percentile(&run.seen.last_ms, 0.5),
            last_p99_ms: percentile(&run.seen.last_ms, 0.99),
            bytes_per_player: bytes / players as f64 / usage.wall_seconds,
            report: run.report()?,
            counted,
        })
    }

    fn server_arguments(&self, contender: Contender) -> Vec<String> {
        let mut arguments = vec![
            format!("--ticks-per-second={}", self.ticks_per_second),
            format!("--state-bytes={}", self.state_bytes),
        ];
        arguments.extend((contender == Contender::Context).then(|| "--compression".to_owned()));
        arguments.extend(self.naive.then(|| "--naive".to_owned()));
        arguments
    }
}

struct Run<'a> {
    plan: &'a Room,
    generator: Generator,
    /// The publisher of the bare loop.
    publisher: Option<Publisher>,
    seen: Seen,
}

impl Run<'_> {
    /// Players send inputs at their rate, spread over time, and get states.
    fn play(&mut self, stretch: Duration) -> Result<()> {
        let Room { players, ticks_per_second, inputs, flood, .. } = *self.plan;
        let started = Instant::now();
        let mut sent = 0_u64;
        let mut flooded = 0_u64;
        let mut triggered = 0_u64;
        let mut progress = StallTimer::default();
        loop {
            let elapsed = started.elapsed();
            if elapsed >= stretch {
                return Ok(());
            }
            let due = |per_second: u64| (elapsed.as_secs_f64() * per_second as f64) as u64;
            if let Some(publisher) = &mut self.publisher {
                if due(ticks_per_second.into()) > triggered {
                    triggered += 1;
                    self.seen.begin(unix_us());
                    publisher.publish(&bare::trigger(self.plan.state_bytes + ENVELOPE_BYTES))?;
                }
            } else {
                while sent < due(u64::from(inputs) * players as u64) {
                    self.input((sent % players as u64) as usize, unix_us())?;
                    sent += 1;
                }
                while flooded < due(flood.into()) {
                    self.input(players, unix_us())?;
                    flooded += 1;
                }
            }
            self.generator.turn(Some(Duration::ZERO), &mut self.seen)?;
            progress.check(self.seen.states, || "players get no state".to_owned())?;
        }
    }

    fn input(&mut self, player: usize, at: u64) -> Result<()> {
        let command = Encoding::Json.publish_command(9, CHANNEL, at.to_string().as_bytes());
        self.generator.send(player, &command)
    }

    /// The counts of the room since the last report.
    fn report(&mut self) -> Result<Value> {
        if self.publisher.is_some() {
            return Ok(Value::Null);
        }
        self.input(0, 0)?;
        let asked = Instant::now();
        loop {
            self.generator.turn(Some(Duration::from_millis(10)), &mut self.seen)?;
            if let Some(report) = self.seen.report.take() {
                return Ok(report);
            }
            ensure!(asked.elapsed() < Duration::from_secs(10), "no report");
        }
    }

    /// Publications and parses of the server; `None` of the bare loop.
    fn counted(&self, target: &Target) -> Result<Option<[f64; 2]>> {
        if self.publisher.is_some() {
            return Ok(None);
        }
        let page = metrics::page(target.address())?;
        let sum = |name: &str| -> f64 {
            let lines = page.lines().filter(|line| line.starts_with(name));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
        };
        Ok(Some([
            sum("fanwire_compression_publications_total"),
            sum("fanwire_compression_parses_total"),
        ]))
    }
}

/// The states that players received.
struct Seen {
    players: usize,
    states: u64,
    /// Players that have a tick, by its number.
    open: HashMap<u64, usize>,
    last_ms: Vec<f64>,
    report: Option<Value>,
    /// Times at which ticks of the bare loop began.
    begun: Vec<u64>,
    received: Vec<usize>,
}

impl Seen {
    fn new(players: usize) -> Self {
        Self {
            players,
            states: 0,
            open: HashMap::new(),
            last_ms: Vec::new(),
            report: None,
            begun: Vec::new(),
            received: vec![0; players],
        }
    }

    fn begin(&mut self, at: u64) {
        self.begun.push(at);
    }

    /// A player got the state of a tick that began at a microsecond.
    fn arrived(&mut self, at: u64) {
        self.states += 1;
        let count = self.open.entry(at).or_default();
        *count += 1;
        if *count == self.players {
            self.open.remove(&at);
            self.last_ms.push(unix_us().saturating_sub(at) as f64 / 1e3);
        }
    }
}

impl PublicationHandler for Seen {
    fn publication(&mut self, player: usize, message: &[u8]) -> Result<()> {
        if !self.begun.is_empty() {
            let at = self.begun[self.received[player]];
            self.received[player] += 1;
            self.arrived(at);
            return Ok(());
        }
        if message.starts_with(REPLY) {
            return Ok(());
        }
        let data = Encoding::Json.publication(message)?.data;
        match field(data, b"\"at\":") {
            Some(at) => self.arrived(at),
            None => {
                let mut message: Value = serde_json::from_slice(data).context("a report")?;
                self.report = Some(message["report"].take());
            }
        }
        Ok(())
    }
}

/// The number behind a name near the begin of a JSON text.
fn field(text: &[u8], name: &[u8]) -> Option<u64> {
    let head = &text[..text.len().min(80)];
    let begin = head.windows(name.len()).position(|part| part == name)? + name.len();
    let digits = head[begin..].iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

pub(crate) fn number(report: &Value, name: &str) -> f64 {
    report[name].as_f64().unwrap_or(0.0)
}

fn row(contender: Contender, outcome: &Outcome) -> String {
    let Outcome { cpu_share, last_p50_ms, last_p99_ms, bytes_per_player, report, counted } =
        outcome;
    let [publications, parses] = counted.unwrap_or_default();
    format!(
        "{:<8} {:>6.1} {last_p50_ms:>8.2} {last_p99_ms:>8.2} {:>10.1} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>7} {publications:>8} {parses:>7}",
        format!("{contender:?}"),
        cpu_share * 100.0,
        bytes_per_player / 1024.0,
        number(report, "ticks"),
        number(report, "overruns"),
        number(report, "tick_p50_us"),
        number(report, "tick_p99_us"),
        number(report, "lag_p50_us"),
        number(report, "lag_p99_us"),
        number(report, "refused"),
    )
}

const HEADER: &str = "round            CPU %  last p50  last p99  KiB/s each    ticks   late  tick p50  tick p99 input p50 input p99 refused published  parses";
/// The begin of a reply to an input, accepted or not.
const REPLY: &[u8] = b"{\"id\":";
/// Bytes of a push around its data.
const ENVELOPE_BYTES: usize = 90;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_near_the_begin_are_found() {
        assert_eq!(field(br#"{"tick":7,"at":1234,"state":[]}"#, b"\"at\":"), Some(1234));
        assert_eq!(field(br#"{"report":{}}"#, b"\"at\":"), None);
        let long = format!(r#"{{"state":"{}","at":5}}"#, "x".repeat(100));
        assert_eq!(field(long.as_bytes(), b"\"at\":"), None);
    }
}
