//! One round of `fanout`: a fresh server, fresh subscribers, a warm-up, and one measured stretch.
//! In: a contender and ready-made publications → out: an `Outcome`.
//! Uses `target`, `generator` and `machine`; the stretch starts and ends with nothing under way, so CPU time is whole.
//! Change here how a round is measured; what is compared lives in `fanout`.

use anyhow::Result;
use std::path::Path;
use std::time::{Duration, Instant};

use super::schedule::{Choice, Ledger, Schedule, channel};
use super::{Contender, Publication};
use crate::generator::messages::Encoding;
use crate::generator::publisher::Publisher;
use crate::generator::{Generator, Profile, Progress};
use crate::machine::Meter;
use crate::redis::RedisServer;
use crate::stats::{median, percentile};
use crate::target::Target;

/// What all rounds of a run have in common.
pub struct Round<'a> {
    pub binary: &'a Path,
    /// By channel.
    pub publications: &'a [Vec<Publication>],
    pub choice: Choice,
    /// Of the subscribers.
    pub encoding: Encoding,
    pub subscribers: usize,
    pub outstanding: usize,
    pub seconds: f64,
    pub server_core: usize,
    /// A Redis runs there, too: what it takes is not the server's.
    pub generator_core: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Messages that reached a subscriber, per second of server CPU.
    pub per_cpu_second: f64,
    /// On the wire towards the subscriber, frame header included.
    pub bytes_per_delivery: f64,
    /// From sending the publication to its last receiver.
    pub latency_p50_ms: f64,
    pub latency_p99_ms: f64,
    pub publications: f64,
    /// Share of the server's core that others used.
    pub others_share: f64,
}

impl Round<'_> {
    /// # Errors
    /// A failed start, a failed publication, a message too many, or ten seconds without progress.
    pub fn run(&self, contender: Contender) -> Result<Outcome> {
        let redis = match contender {
            Contender::Redis => Some(RedisServer::start(Some(self.generator_core))?),
            Contender::Bare | Contender::Fanwire { .. } => None,
        };
        let (binary, core, channel) = (self.binary, Some(self.server_core), serde_json::json!({}));
        let target = match (contender, &redis) {
            (Contender::Bare, _) => Target::bare(self.server_core)?,
            (_, None) => Target::fanwire(binary, core)?,
            (_, Some(redis)) => Target::with_engine(binary, core, channel, redis.engine())?,
        };
        self.measure(contender, &target)
            .map_err(|error| error.context(format!("server log:\n{}", target.log_tail())))
    }

    fn measure(&self, contender: Contender, target: &Target) -> Result<Outcome> {
        let mut generator = Generator::new(false)?;
        let (address, registry) = (target.address(), generator.registry());
        let publisher = match contender {
            Contender::Bare => Publisher::bare(address, registry)?,
            Contender::Fanwire { .. } | Contender::Redis => {
                Publisher::http(address, self.outstanding, registry)?
            }
        };
        let memberships: Vec<_> =
            (0..self.subscribers).map(|number| self.choice.of_subscriber(number)).collect();
        for group in memberships.chunk_by(|one, other| one == other) {
            generator.open(address, group.len(), &self.profile(contender, &group[0]))?;
        }
        let (ledger, schedule) = (Ledger::new(memberships), Schedule::new(self.choice.all));
        let mut run = Run { round: self, contender, generator, publisher, ledger, schedule };
        run.publish_for(WARM_UP)?;
        run.ledger.latencies_ms.clear();
        let (deliveries, bytes) = (run.ledger.deliveries, run.generator.bytes_received());
        let meter = Meter::start(target.pid(), self.server_core)?;
        run.publish_for(Duration::from_secs_f64(self.seconds))?;
        let usage = meter.stop()?;
        let deliveries = (run.ledger.deliveries - deliveries) as f64;
        let latencies = &run.ledger.latencies_ms;
        Ok(Outcome {
            per_cpu_second: deliveries / usage.cpu_seconds,
            bytes_per_delivery: (run.generator.bytes_received() - bytes) as f64 / deliveries,
            latency_p50_ms: percentile(latencies, 0.5),
            latency_p99_ms: percentile(latencies, 0.99),
            publications: latencies.len() as f64,
            others_share: usage.others_share,
        })
    }
}

impl Round<'_> {
    fn profile(&self, contender: Contender, channels: &[usize]) -> Profile {
        Profile {
            plain: contender == Contender::Bare,
            encoding: self.encoding,
            compression: contender == Contender::Fanwire { compression: true },
            channels: channels.iter().map(|number| channel(*number)).collect(),
        }
    }
}

impl Outcome {
    /// The median of each figure by itself.
    pub fn median(outcomes: &[Outcome]) -> Outcome {
        let of = |figure: fn(&Outcome) -> f64| median(outcomes.iter().map(figure));
        Outcome {
            per_cpu_second: of(|outcome| outcome.per_cpu_second),
            bytes_per_delivery: of(|outcome| outcome.bytes_per_delivery),
            latency_p50_ms: of(|outcome| outcome.latency_p50_ms),
            latency_p99_ms: of(|outcome| outcome.latency_p99_ms),
            publications: of(|outcome| outcome.publications),
            others_share: of(|outcome| outcome.others_share),
        }
    }
}

struct Run<'a> {
    round: &'a Round<'a>,
    contender: Contender,
    generator: Generator,
    publisher: Publisher,
    ledger: Ledger,
    schedule: Schedule,
}

impl Run<'_> {
    /// Publishes for this long, then waits until everything has arrived.
    fn publish_for(&mut self, stretch: Duration) -> Result<()> {
        let started = Instant::now();
        let mut progress = Progress::default();
        loop {
            let now = Instant::now();
            if now - started < stretch {
                self.publish(now)?;
            } else if self.ledger.open.is_empty() && self.publisher.is_idle() {
                return Ok(());
            }
            if self.generator.turn(Some(SPIN), &mut self.ledger)? {
                self.publisher.receive()?;
            }
            progress.check(self.ledger.deliveries, || self.ledger.missing())?;
        }
    }

    fn publish(&mut self, now: Instant) -> Result<()> {
        while self.ledger.open.len() < self.round.outstanding && self.publisher.has_free_lane() {
            let (channel, number) = self.schedule.pick();
            let publications = &self.round.publications[channel];
            let publication = &publications[number % publications.len()];
            self.ledger.published(channel, now);
            self.publisher.publish(match self.contender {
                Contender::Bare => &publication.trigger,
                Contender::Fanwire { .. } | Contender::Redis => &publication.request,
            })?;
        }
        Ok(())
    }
}

const WARM_UP: Duration = Duration::from_millis(500);
/// The generator never sleeps while it measures: waking it for every frame would cost the server, not the generator.
const SPIN: Duration = Duration::ZERO;
