//! Scenario `areas`: viewers of nine tiles each in worlds of several sizes, next to a bare loop that sends as much to each.
//! In: viewers, sizes of the world → out: CPU of the server, bytes per viewer and tick, next to what the visible changes need.
//! Uses `areas::server` in a process of its own on the server's core, `generator` for the viewers.
//! Changed here: what is compared and shown; what the world does lives in `areas::server`.

use anyhow::Result;
use clap::Args;
use std::time::{Duration, Instant};

use crate::bare;
use crate::setup::Setup;
use crate::target::Target;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::Publisher;
use fanwire_load::generator::{Deliveries, Generator, Profile, PublicationHandler, StallTimer};
use fanwire_load::machine::{self, Meter};
use server::{CHANNEL, TICKS_PER_SECOND};

pub mod server;

/// Viewers of tiles at a constant density of objects, of which a tenth moves in each of ten ticks a second.
#[derive(Args)]
pub struct Areas {
    #[arg(long, default_value_t = 2000)]
    viewers: usize,
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    objects: Vec<u64>,
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Compare viewers of 25 tiles with those of nine and a ring around them whose objects are sent in every fifth tick.
    #[arg(long)]
    rings: bool,
    #[command(flatten)]
    setup: Setup,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// CPU seconds of the server per second.
    pub(crate) cpu_share: f64,
    /// Those of the thread that moves the objects and makes the texts of tiles, once for all viewers.
    pub(crate) world_share: f64,
    /// Bytes on the wire, per viewer and tick.
    pub(crate) bytes: f64,
    /// Bytes of the members `set`, `moved` and `removed`, per viewer and tick: the visible changes alone need them.
    pub(crate) change_bytes: f64,
}

/// A size of the world.
pub(crate) struct Row {
    pub(crate) objects: u64,
    /// CPU share of the bare loop.
    pub(crate) bare: f64,
    pub(crate) raw: Outcome,
    pub(crate) context: Outcome,
}

impl Areas {
    /// 2,000 viewers in worlds of 10,000 to 1,000,000 objects.
    pub(crate) fn of_three_sizes(setup: Setup, seconds: f64) -> Self {
        Self {
            viewers: 2_000,
            objects: vec![10_000, 100_000, 1_000_000],
            seconds,
            rings: false,
            setup,
        }
    }

    /// # Errors
    /// A server that does not start, or viewers that get nothing for ten seconds.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        if self.rings {
            return self.compare_rings();
        }
        println!("areas: {} viewers of 9 tiles, 10 ticks per second\n\n{HEADER}", self.viewers);
        for Row { objects, bare, raw, context } in self.rows()? {
            println!(
                "{objects:>9} {:>8.1} {:>9.1} {:>8.1} {:>9.1} {:>10.0} {:>10.0} {:>10.0} {:>10.2} {:>10.2} {:>12.2}",
                bare * 100.0,
                raw.cpu_share * 100.0,
                raw.world_share * 100.0,
                context.cpu_share * 100.0,
                raw.change_bytes,
                raw.bytes,
                context.bytes,
                raw.bytes / raw.change_bytes,
                raw.cpu_share / bare,
                (raw.cpu_share - raw.world_share) / bare,
            );
        }
        Ok(true)
    }

    /// # Errors
    /// As those of [`run`](Self::run).
    pub(crate) fn rows(&self) -> Result<Vec<Row>> {
        let row = |objects| {
            let raw = self.measure(objects, false, &[])?;
            let bare = self.bare(raw.change_bytes as usize)?;
            Ok(Row { objects, bare, raw, context: self.measure(objects, true, &[])? })
        };
        self.objects.iter().copied().map(row).collect()
    }

    /// Prints CPU and bytes of 25 tiles in each tick, and of nine and 16 in a ring, without compression and in context.
    fn compare_rings(&self) -> Result<bool> {
        println!(
            "areas: {} viewers of 25 tiles, 10 ticks per second\n\n{RINGS_HEADER}",
            self.viewers
        );
        for objects in &self.objects {
            for compression in [false, true] {
                let all = self.measure(*objects, compression, &["--tiles=5"])?;
                let rings = self.measure(*objects, compression, &["--ring-every=5"])?;
                println!(
                    "{objects:>9} {:>8} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>10.0} {:>10.0} {:>8.2} {:>8.2}",
                    if compression { "context" } else { "off" },
                    all.cpu_share * 100.0,
                    all.world_share * 100.0,
                    rings.cpu_share * 100.0,
                    rings.world_share * 100.0,
                    all.bytes,
                    rings.bytes,
                    rings.cpu_share / all.cpu_share,
                    rings.bytes / all.bytes,
                );
            }
        }
        Ok(true)
    }

    fn measure(&self, objects: u64, compression: bool, view: &[&str]) -> Result<Outcome> {
        let mut arguments = vec![format!("--objects={objects}")];
        arguments.extend(view.iter().map(|flag| (*flag).to_owned()));
        arguments.extend(compression.then(|| "--compression".to_owned()));
        let target = Target::area(self.setup.server_core, &arguments)?;
        let mut generator = Generator::new(false)?;
        let profile = Profile {
            plain: false,
            encoding: Encoding::Json,
            compression,
            channels: vec![CHANNEL.to_owned()],
        };
        generator.open(target.address(), self.viewers, &profile)?;
        generator.send(0, &Encoding::Json.publish_command(9, CHANNEL, b"1"))?;
        let mut seen = Changes { sees_text: !compression, bytes: 0, messages: 0 };
        read(&mut generator, &mut seen, Duration::from_secs(3))?;
        let bytes = generator.bytes_received();
        let changes = seen.bytes;
        let meter = Meter::start(target.pid(), self.setup.server_core)?;
        let world = machine::thread_cpu_seconds(target.pid(), WORLD_THREAD)?;
        read(&mut generator, &mut seen, Duration::from_secs_f64(self.seconds))?;
        let world = machine::thread_cpu_seconds(target.pid(), WORLD_THREAD)? - world;
        let usage = meter.stop()?;
        let ticks = usage.wall_seconds * f64::from(TICKS_PER_SECOND);
        let each = |bytes: u64| bytes as f64 / ticks / self.viewers as f64;
        Ok(Outcome {
            cpu_share: usage.cpu_seconds / usage.wall_seconds,
            world_share: world / usage.wall_seconds,
            bytes: each(generator.bytes_received() - bytes),
            change_bytes: each(seen.bytes - changes),
        })
    }

    /// CPU share of a loop that sends so many bytes to each viewer in each tick.
    fn bare(&self, bytes: usize) -> Result<f64> {
        let target = Target::bare(self.setup.server_core, None)?;
        let mut generator = Generator::new(false)?;
        let mut publisher = Publisher::bare(target.address(), generator.registry())?;
        let encoding = Encoding::Json;
        let profile = Profile { plain: true, encoding, compression: false, channels: Vec::new() };
        generator.open(target.address(), self.viewers, &profile)?;
        let meter = Meter::start(target.pid(), self.setup.server_core)?;
        let started = Instant::now();
        let mut sent = 0;
        while started.elapsed().as_secs_f64() < self.seconds {
            if started.elapsed().as_secs_f64() * f64::from(TICKS_PER_SECOND) >= f64::from(sent) {
                sent += 1;
                publisher.publish(&bare::trigger(bytes))?;
            }
            generator.turn(Some(Duration::from_millis(1)), &mut Deliveries::default())?;
        }
        let usage = meter.stop()?;
        Ok(usage.cpu_seconds / usage.wall_seconds)
    }
}

fn read(generator: &mut Generator, seen: &mut Changes, stretch: Duration) -> Result<()> {
    let started = Instant::now();
    let mut progress = StallTimer::default();
    while started.elapsed() < stretch {
        generator.turn(Some(Duration::from_millis(1)), seen)?;
        progress.check(seen.messages, || "viewers get nothing".to_owned())?;
    }
    Ok(())
}

/// Counts the bytes of changes in texts.
struct Changes {
    /// Compressed messages are not inflated.
    sees_text: bool,
    bytes: u64,
    messages: u64,
}

impl PublicationHandler for Changes {
    fn publication(&mut self, _viewer: usize, message: &[u8]) -> Result<()> {
        self.messages += 1;
        if self.sees_text && !message.starts_with(REPLY) {
            let data = Encoding::Json.publication(message)?.data;
            // Behind `{"tile":"12,34,0",`: sets, moves and removals.
            self.bytes += data.len().saturating_sub(TEXT_HEAD_BYTES) as u64;
        }
        Ok(())
    }
}

const RINGS_HEADER: &str =
    "  objects compress   cpu % world %   rings % world %      bytes      rings  cpu x   bytes x";
const HEADER: &str = "  objects   bare %     raw %  world %  context %    changes  raw bytes  ctx bytes  raw/needs   CPU/bare  shards/bare";
/// Runs the ticks of rooms.
const WORLD_THREAD: &str = "fanwire-room";
const REPLY: &[u8] = b"{\"id\":";
const TEXT_HEAD_BYTES: usize = 18;
