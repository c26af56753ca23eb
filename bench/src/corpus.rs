//! Scenario `corpus`: real input through the HTTP API to real WebSocket subscribers, every delivery checked.
//! In: a folder of corpus files → out: what was checked; not passed unless each subscriber got everything once, in order, intact.
//! Uses `files` for the input, `ledger` for the checks, `target` and `generator` for the server and the subscribers.
//! Changed here: who subscribes to what and the pace of publishing; what counts as right lives in `ledger`.

use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::stats::grouped;
use crate::target::{Target, fanwire_binary};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::Publisher;
use fanwire_load::generator::{Generator, Profile, StallTimer};
use fanwire_load::machine;
use files::Source;
use ledger::Ledger;

pub mod files;
pub mod ledger;

/// Publish corpus files to real subscribers and check that each got everything once, in order, intact.
#[derive(Args)]
pub struct Corpus {
    /// Folder with *.jsonl (one JSON text a line) and *.bin (u32 little-endian length, record).
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))]
    dir: PathBuf,
    /// JSON subscribers, each of every *.jsonl channel.
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// Protobuf subscribers, each of every channel, those of *.bin included.
    #[arg(long, default_value_t = 250)]
    protobuf_subscribers: usize,
    /// Messages of each file; 0 takes all of them.
    #[arg(long, default_value_t = 500)]
    per_file: usize,
    /// Publications under way at once.
    #[arg(long, default_value_t = 16)]
    outstanding: usize,
    /// Do not offer permessage-deflate.
    #[arg(long)]
    no_compression: bool,
    /// The fanwire binary; by default the one built with this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

impl Corpus {
    /// True when every delivery was right; the first wrong one is an error that names it.
    ///
    /// # Errors
    /// A wrong, missing, repeated or reordered delivery, a failed publication, or a server that does not start.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        let sources = files::load(&self.dir, self.per_file)?;
        for source in &sources {
            println!(
                "{:<20} {:>6} messages",
                source.channel,
                grouped(source.messages.len() as f64)
            );
        }
        let binary = fanwire_binary(self.server.clone())?;
        let target = Target::fanwire(&binary, None, serde_json::json!({}))?;
        let checked = self.publish_all(&target, &sources);
        checked.map_err(|error| error.context(format!("server log:\n{}", target.log_tail())))?;
        Ok(true)
    }

    fn publish_all(&self, target: &Target, sources: &[Source]) -> Result<()> {
        let mut generator = Generator::new(true)?;
        let publisher = Publisher::http(target.address(), 1, generator.registry())?;
        self.subscribe(target, sources, &mut generator)?;
        let opening_bytes = generator.bytes_received();
        let ledger = Ledger::new(sources, self.subscribers, self.protobuf_subscribers);
        let mut run = Run { generator, publisher, ledger, progress: StallTimer::default() };
        let started = Instant::now();
        for (source, request) in files::interleaved(sources) {
            while run.ledger.open() >= self.outstanding || !run.publisher.has_free_lane() {
                run.turn(TURN)?;
            }
            run.ledger.published(source);
            run.publisher.publish(&request)?;
        }
        while run.ledger.open() > 0 || !run.publisher.is_idle() {
            run.turn(TURN)?;
        }
        let seconds = started.elapsed().as_secs_f64();
        // Whatever comes now was not published.
        run.turn(AFTERWARDS)?;
        self.report(&run.ledger, run.generator.bytes_received() - opening_bytes, seconds);
        Ok(())
    }

    fn subscribe(
        &self,
        target: &Target,
        sources: &[Source],
        generator: &mut Generator,
    ) -> Result<()> {
        for (encoding, count) in
            [(Encoding::Json, self.subscribers), (Encoding::Protobuf, self.protobuf_subscribers)]
        {
            let reached = sources.iter().filter(|source| source.reaches(encoding));
            let channels = reached.map(|source| source.channel.clone()).collect();
            let compression = !self.no_compression;
            let profile = Profile { plain: false, encoding, compression, channels };
            generator.open(target.address(), count, &profile)?;
        }
        Ok(())
    }

    fn report(&self, ledger: &Ledger<'_>, wire_bytes: u64, seconds: f64) {
        let deliveries = ledger.deliveries() as f64;
        println!(
            "\n{} JSON and {} Protobuf subscribers, compression {}",
            grouped(self.subscribers as f64),
            grouped(self.protobuf_subscribers as f64),
            if self.no_compression { "not offered" } else { "negotiated" },
        );
        println!(
            "{} deliveries checked in {seconds:.1} s: each publication once, in order, intact",
            grouped(deliveries)
        );
        println!(
            "{:.1} B per delivery on the wire for {:.1} B of message",
            wire_bytes as f64 / deliveries,
            ledger.message_bytes() as f64 / deliveries,
        );
    }
}

struct Run<'a> {
    generator: Generator,
    publisher: Publisher,
    ledger: Ledger<'a>,
    progress: StallTimer,
}

impl Run<'_> {
    fn turn(&mut self, timeout: Duration) -> Result<()> {
        if self.generator.turn(Some(timeout), &mut self.ledger)? {
            self.publisher.receive()?;
        }
        let answers = if self.publisher.is_idle() { "answered" } else { "not answered" };
        self.progress.check(self.ledger.deliveries(), || {
            format!("{}; the last request is {answers}", self.ledger.missing())
        })
    }
}

const TURN: Duration = Duration::from_millis(500);
/// How long a surplus delivery may take to show itself.
const AFTERWARDS: Duration = Duration::from_millis(300);
