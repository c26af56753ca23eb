//! One contender of `rate`: a fresh server, its subscribers, and publications at their planned times.
//! In: a contender and ready-made publications → out: an `Outcome`.
//! Uses `target`, `generator` and `machine`; the generator never sleeps, so its own delay is below a millisecond.
//! Change here how one contender is measured; what is compared lives in `rate`.

use anyhow::{Result, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

use super::Contender;
use crate::bare;
use crate::fanout::schedule::Ledger;
use crate::stats::percentile;
use crate::target::Target;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::Publisher;
use fanwire_load::generator::{Generator, Profile, PublicationHandler, StallTimer};
use fanwire_load::machine::{Meter, resident_bytes};

/// What all contenders have in common.
pub(super) struct Plan<'a> {
    pub(super) binary: &'a Path,
    pub(super) publications: &'a [Publication],
    pub(super) encoding: Encoding,
    /// The slow and the stopped ones are among them.
    pub(super) subscribers: usize,
    pub(super) hz: f64,
    pub(super) stopped: usize,
    pub(super) slow: usize,
    /// Bytes per second that each slow subscriber reads.
    pub(super) slow_bytes: usize,
    pub(super) seconds: f64,
    pub(super) server_core: usize,
}

/// One publication, ready.
pub(super) struct Publication {
    /// For the HTTP API.
    pub(super) request: Vec<u8>,
    /// The payload, as subscribers get it.
    pub(super) data: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// CPU seconds of the server per second.
    pub(super) cpu_share: f64,
    /// From the planned time to the last of the fast subscribers.
    pub(super) latency_p50_ms: f64,
    pub(super) latency_p99_ms: f64,
    /// Of the fast subscribers, frame header included.
    pub(super) bytes_per_delivery: f64,
    /// Growth of the server's resident memory while it was measured, in bytes.
    pub(super) resident_growth: f64,
    /// The fewest publications that one stopped subscriber got in the end, of all that there were.
    pub(super) received_by_stopped: u64,
    pub(super) received_by_slow: u64,
    /// Share of the server's core that others used.
    pub(super) others_share: f64,
}

impl Plan<'_> {
    /// # Errors
    /// A failed start, a failed publication, a wrong message, or a subscriber that does not get the newest publication.
    pub(super) fn measure(&self, contender: Contender) -> Result<Outcome> {
        let target = match contender {
            Contender::Bare => Target::bare(self.server_core)?,
            _ => {
                // Who reads nothing does not answer pings either, and would be closed with 3012 after half a minute.
                let settings = serde_json::json!({
                    "channel": { "without_namespace": { "delivery": "latest" } },
                    "client": { "ping_interval": "600s" },
                });
                Target::with_settings(self.binary, Some(self.server_core), settings)?
            }
        };
        let mut run = self.connect(contender, &target)?;
        run.publish_for(WARM_UP)?;
        run.ledger.latencies_ms.clear();
        let resident = resident_bytes(target.pid())?;
        let (deliveries, bytes) = (run.ledger.deliveries, run.fast.bytes_received());
        let meter = Meter::start(target.pid(), self.server_core)?;
        run.publish_for(Duration::from_secs_f64(self.seconds))?;
        let usage = meter.stop()?;
        let resident_growth = resident_bytes(target.pid())? as f64 - resident as f64;
        let deliveries = run.ledger.deliveries - deliveries;
        let bytes = run.fast.bytes_received() - bytes;
        run.catch_up()?;
        Ok(Outcome {
            cpu_share: usage.cpu_seconds / usage.wall_seconds,
            latency_p50_ms: percentile(&run.ledger.latencies_ms, 0.5),
            latency_p99_ms: percentile(&run.ledger.latencies_ms, 0.99),
            bytes_per_delivery: bytes as f64 / deliveries as f64,
            resident_growth,
            received_by_stopped: run.stopped.1.fewest(),
            received_by_slow: run.slow.1.fewest(),
            others_share: usage.others_share(),
        })
    }

    fn connect(&self, contender: Contender, target: &Target) -> Result<Run<'_>> {
        let profile = Profile {
            plain: contender == Contender::Bare,
            encoding: if contender == Contender::Bare { Encoding::Json } else { self.encoding },
            compression: contender == Contender::Context,
            channels: vec![CHANNEL.to_owned()],
        };
        let (mut fast, address) = (Generator::new(false)?, target.address());
        let publisher = match contender {
            Contender::Bare => Publisher::bare(address, fast.registry())?,
            _ => Publisher::http(address, LANES, fast.registry())?,
        };
        let (slow, stopped) = match contender {
            Contender::WithSlow => (self.slow, self.stopped),
            _ => (0, 0),
        };
        let behind = |count: usize| -> Result<(Generator, Newest)> {
            let mut generator = Generator::with_receive_buffer(BEHIND_BUFFER_BYTES)?;
            // Half of them decode frames in context, which must be whole whatever was left out.
            let compressed = Profile { compression: true, ..profile.clone() };
            generator.open(address, count / 2, &compressed)?;
            generator.open(address, count - count / 2, &profile)?;
            Ok((generator, Newest::new(count, self.encoding)))
        };
        let fast_count = self.subscribers - slow - stopped;
        fast.open(address, fast_count, &profile)?;
        Ok(Run {
            plan: self,
            contender,
            fast,
            publisher,
            ledger: Ledger::new(vec![vec![0]; fast_count]),
            slow: behind(slow)?,
            stopped: behind(stopped)?,
            published: 0,
        })
    }
}

struct Run<'a> {
    plan: &'a Plan<'a>,
    contender: Contender,
    fast: Generator,
    publisher: Publisher,
    ledger: Ledger,
    slow: (Generator, Newest),
    stopped: (Generator, Newest),
    published: usize,
}

impl Run<'_> {
    /// Publishes for this long, then waits until every fast subscriber has everything.
    fn publish_for(&mut self, stretch: Duration) -> Result<()> {
        let period = Duration::from_secs_f64(1.0 / self.plan.hz);
        let started = Instant::now();
        let (mut planned, mut slow_read) = (started, started);
        let mut progress = StallTimer::default();
        loop {
            let now = Instant::now();
            if planned < started + stretch {
                if now >= planned && self.publisher.has_free_lane() {
                    self.publish(planned)?;
                    planned += period;
                }
            } else if self.ledger.open.is_empty() && self.publisher.is_idle() {
                return Ok(());
            }
            if now >= slow_read {
                let (generator, newest) = &mut self.slow;
                generator.read_each(self.plan.slow_bytes / SLOW_READS, newest)?;
                slow_read += Duration::from_secs(1) / SLOW_READS as u32;
            }
            if self.fast.turn(Some(Duration::ZERO), &mut self.ledger)? {
                self.publisher.receive()?;
            }
            progress.check(self.ledger.deliveries, || self.ledger.missing())?;
        }
    }

    fn publish(&mut self, planned: Instant) -> Result<()> {
        let publication = &self.plan.publications[self.published % self.plan.publications.len()];
        self.published += 1;
        self.ledger.published(0, planned);
        if self.contender == Contender::Bare {
            return self.publisher.publish(&bare::trigger(publication.data.len() + ENVELOPE_BYTES));
        }
        self.publisher.publish(&publication.request)
    }

    /// The slow and the stopped subscribers read until they have the newest publication.
    fn catch_up(&mut self) -> Result<()> {
        let last = (self.published - 1) % self.plan.publications.len();
        let newest = &self.plan.publications[last].data;
        for (generator, read) in [&mut self.slow, &mut self.stopped] {
            let mut progress = StallTimer::default();
            while read.missing(newest) > 0 {
                let bytes = generator.read_each(READ_BYTES, read)?;
                let missing = || format!("{} without the newest publication", read.missing(newest));
                progress.check(generator.bytes_received(), missing)?;
                if bytes == 0 {
                    generator.turn(Some(Duration::from_millis(10)), read)?;
                }
            }
            ensure!(read.most() <= self.published as u64, "more than was published");
        }
        Ok(())
    }
}

/// What each subscriber that fell behind got, and its last publication.
struct Newest {
    encoding: Encoding,
    last: Vec<Vec<u8>>,
    received: Vec<u64>,
}

impl Newest {
    fn new(count: usize, encoding: Encoding) -> Self {
        Self { encoding, last: vec![Vec::new(); count], received: vec![0; count] }
    }

    fn missing(&self, newest: &[u8]) -> usize {
        self.last.iter().filter(|last| *last != newest).count()
    }

    fn most(&self) -> u64 {
        self.received.iter().max().copied().unwrap_or(0)
    }

    fn fewest(&self) -> u64 {
        self.received.iter().min().copied().unwrap_or(0)
    }
}

impl PublicationHandler for Newest {
    fn publication(&mut self, number: usize, message: &[u8]) -> Result<()> {
        let publication = self.encoding.publication(message)?;
        self.last[number].clear();
        self.last[number].extend_from_slice(publication.data);
        self.received[number] += 1;
        Ok(())
    }
}

pub(super) const CHANNEL: &str = "bench";

/// API calls under way at once. The server closes a connection without any request after 10 s.
const LANES: usize = 1;
const WARM_UP: Duration = Duration::from_secs(2);
/// How often in a second a slow subscriber reads.
const SLOW_READS: usize = 20;
const READ_BYTES: usize = 64 << 10;
/// The kernel's buffer of a subscriber that falls behind; without a limit a loopback holds megabytes.
const BEHIND_BUFFER_BYTES: usize = 128 << 10;
/// Bytes of a push besides its data.
const ENVELOPE_BYTES: usize = 40;
