//! Scenario `keys`: a price per symbol in one channel with `delivery_key_tag`, and readers of which some are slow.
//! In: symbols, updates per second, readers → out: what each got; not passed unless every reader ends with all newest values.
//! Uses `target` and `generator`; values of a symbol must arrive in order.
//! Change here who reads and how much is published; the rules of delivery are in docs/operation.md.

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::time::{Duration, Instant};

use crate::setup::Setup;
use crate::target::{API_KEY, Target};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::stream_publisher::StreamPublisher;
use fanwire_load::generator::{Generator, Profile, PublicationHandler, StallTimer};
use fanwire_load::machine::{self, Meter, resident_bytes};
use fanwire_load::random::Random;

/// Updates of many symbols in one channel, to readers of which some are slow: all end with the newest values.
#[derive(Args)]
pub struct Keys {
    #[arg(long, default_value_t = 1_000)]
    symbols: usize,
    /// Updates per second, of symbols at random.
    #[arg(long, default_value_t = 5_000.0)]
    rate: f64,
    /// Readers in all.
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// So many of them read `--slow-bytes` per second.
    #[arg(long, default_value_t = 100)]
    slow: usize,
    #[arg(long, default_value_t = 65_536)]
    slow_bytes: usize,
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    #[command(flatten)]
    setup: Setup,
}

impl Keys {
    /// # Errors
    /// A server that does not start, a value out of order, or a reader without a newest value.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        ensure!(self.slow < self.subscribers, "--slow: fewer than --subscribers");
        let settings = serde_json::json!({
            "channel": { "without_namespace": { "delivery": "latest", "delivery_key_tag": "symbol" } },
        });
        let core = self.setup.server_core;
        let target = Target::with_settings(&self.setup.binary()?, Some(core), settings)?;
        let mut fast = Readers::open(Generator::new(true)?, &target, self.fast(), self.symbols)?;
        let behind = Generator::with_receive_buffer(BEHIND_BUFFER_BYTES)?;
        let mut slow = Readers::open(behind, &target, self.slow, self.symbols)?;
        let mut stream =
            StreamPublisher::open(target.address(), "localhost", "/api/stream", API_KEY)?;
        let resident = resident_bytes(target.pid())?;
        let meter = Meter::start(target.pid(), core)?;
        let newest = self.publish(&mut stream, &mut fast, &mut slow)?;
        let usage = meter.stop()?;
        let grown = resident_bytes(target.pid())? as f64 - resident as f64;
        let published: u64 = newest.iter().sum();
        fast.finish(&newest).context("readers that read all the time")?;
        slow.finish(&newest).context("slow readers")?;
        println!(
            "keys: {} symbols, {published} updates in {:.1} s, {} readers of which {} are slow ({} B/s)",
            self.symbols, usage.wall_seconds, self.subscribers, self.slow, self.slow_bytes
        );
        println!(
            "server: {:.0} % of its core, memory {:+.1} MiB",
            usage.cpu_seconds / usage.wall_seconds * 100.0,
            grown / f64::from(1 << 20)
        );
        for (name, readers) in [("fast", &fast), ("slow", &slow)] {
            let values = &readers.values;
            println!(
                "{name}: {:.0} updates each on average, the others were replaced",
                values.received as f64 / readers.count.max(1) as f64
            );
        }
        println!("every reader has the newest value of every symbol");
        Ok(true)
    }

    fn fast(&self) -> usize {
        self.subscribers - self.slow
    }

    /// Publishes for the whole time. Returns the newest value of each symbol, which counts its updates.
    fn publish(
        &self,
        stream: &mut StreamPublisher,
        fast: &mut Readers,
        slow: &mut Readers,
    ) -> Result<Vec<u64>> {
        let (mut newest, mut random) = (vec![0; self.symbols], Random(1));
        let (started, mut published) = (Instant::now(), 0u64);
        let mut slow_reads = 0.0;
        while started.elapsed().as_secs_f64() < self.seconds || stream.missing() > 0 {
            let seconds = started.elapsed().as_secs_f64().min(self.seconds);
            let due = (seconds * self.rate) as u64 - published;
            let room = UNANSWERED_MAX.saturating_sub(stream.missing()) as u64;
            let count = due.min(room);
            if count > 0 {
                let updates = (0..count).map(|_| {
                    let symbol = random.below(self.symbols);
                    newest[symbol] += 1;
                    update(symbol, newest[symbol])
                });
                stream.publish_all(updates)?;
                published += count;
            }
            stream.flush()?;
            stream.receive()?;
            fast.turn()?;
            if seconds >= slow_reads {
                slow.read_each(self.slow_bytes / SLOW_READS)?;
                slow_reads += 1.0 / SLOW_READS as f64;
            }
        }
        Ok(newest)
    }
}

fn update(symbol: usize, value: u64) -> String {
    format!(
        "{{\"channel\":\"{CHANNEL}\",\"tags\":{{\"symbol\":\"{symbol}\"}},\"data\":{{\"symbol\":{symbol},\"value\":{value}}}}}"
    )
}

/// A group of readers.
struct Readers {
    generator: Generator,
    count: usize,
    values: Values,
}

impl Readers {
    fn open(
        mut generator: Generator,
        target: &Target,
        count: usize,
        symbols: usize,
    ) -> Result<Self> {
        let channels = vec![CHANNEL.to_owned()];
        let profile =
            Profile { plain: false, encoding: Encoding::Json, compression: false, channels };
        generator.open(target.address(), count, &profile)?;
        let values = Values { symbols, newest: vec![0; count * symbols], received: 0 };
        Ok(Self { generator, count, values })
    }

    fn turn(&mut self) -> Result<()> {
        self.generator.turn(Some(Duration::ZERO), &mut self.values).map(drop)
    }

    fn read_each(&mut self, bytes: usize) -> Result<u64> {
        self.generator.read_each(bytes, &mut self.values)
    }

    /// Reads until every reader has every newest value.
    fn finish(&mut self, newest: &[u64]) -> Result<()> {
        let mut stall = StallTimer::default();
        loop {
            let missing = self.values.missing(newest);
            if missing == 0 {
                return Ok(());
            }
            if self.read_each(READ_BYTES)? == 0 {
                self.generator.turn(Some(QUIET_TURN), &mut self.values)?;
            }
            let bytes = self.generator.bytes_received();
            stall.check(bytes, || format!("{missing} newest values are missing"))?;
        }
    }
}

/// The value of each symbol at each reader.
struct Values {
    symbols: usize,
    newest: Vec<u64>,
    received: u64,
}

impl Values {
    fn missing(&self, newest: &[u64]) -> usize {
        let readers = self.newest.chunks(self.symbols);
        readers
            .map(|own| own.iter().zip(newest).filter(|(own, newest)| own != newest).count())
            .sum()
    }
}

impl PublicationHandler for Values {
    fn publication(&mut self, reader: usize, message: &[u8]) -> Result<()> {
        let publication = Encoding::Json.publication(message)?;
        let text = std::str::from_utf8(publication.data)?;
        let numbers = text.strip_prefix("{\"symbol\":").and_then(|rest| rest.strip_suffix('}'));
        let (symbol, value) = numbers
            .and_then(|rest| rest.split_once(",\"value\":"))
            .with_context(|| format!("not an update: {text}"))?;
        let (symbol, value): (usize, u64) = (symbol.parse()?, value.parse()?);
        let known = &mut self.newest[reader * self.symbols + symbol];
        if value <= *known {
            bail!("reader {reader}, symbol {symbol}: value {value} came after {known}");
        }
        *known = value;
        self.received += 1;
        Ok(())
    }
}

const CHANNEL: &str = "prices";
const UNANSWERED_MAX: usize = 2_000;
/// How often in a second a slow reader reads.
const SLOW_READS: usize = 20;
const READ_BYTES: usize = 64 << 10;
/// How long to wait for bytes where no socket has any.
const QUIET_TURN: Duration = Duration::from_millis(10);
/// The kernel's buffer of a slow reader; without a limit a loopback holds megabytes.
const BEHIND_BUFFER_BYTES: usize = 128 << 10;
