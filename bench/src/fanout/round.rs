//! One round of `fanout`: fresh servers, fresh subscribers, a warm-up, and measured stretches, the contenders by turns.
//! In: two contenders and ready-made publications → out: an `Outcome` of each.
//! Uses `target`, `generator` and `machine`; a stretch starts and ends with nothing under way, so CPU time is whole.
//! Changed here: how a round is measured; what is compared lives in `fanout`.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

use super::schedule::{Choice, Ledger, Schedule, channel};
use super::source::{By, Source};
use super::{Contender, Publication};
use super::{answers, map};
use crate::certificate::Certificate;
use crate::redis::RedisServer;
use crate::stats::{median, percentile};
use crate::target::{API_KEY, Target, merge};
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::Publisher;
use fanwire_load::generator::{
    ConnectTarget, Generator, Profile, StallTimer, SubscribeForm, SubscriberTransport,
};
use fanwire_load::machine::{self, Meter, Usage};

/// The settings that all rounds of a run have in common.
pub struct Round<'a> {
    pub binary: &'a Path,
    /// The build that it is compared to, if it is.
    pub other: Option<&'a Path>,
    /// The publications of each channel.
    pub publications: &'a [Vec<Publication>],
    pub choice: Choice,
    /// The transport of Fanwire's subscribers.
    pub transport: SubscriberTransport,
    /// The encoding of the subscribers.
    pub encoding: Encoding,
    pub subscribers: usize,
    pub outstanding: usize,
    pub by: By,
    /// Publications per second; as many as possible if none.
    pub rate: Option<f64>,
    pub seconds: f64,
    /// So many stretches are these seconds.
    pub turns: u32,
    pub server_core: usize,
    /// A Redis runs there, too: what it takes is not the server's.
    pub generator_core: usize,
    /// Subscribers of both contenders speak TLS.
    pub certificate: Option<&'a Certificate>,
    /// Takeovers of [`Contender::TakenOver`].
    pub takeovers: usize,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct Outcome {
    /// Messages that reached a subscriber, per second of server CPU.
    pub per_cpu_second: f64,
    /// Bytes on the wire towards a subscriber, with the header of the frame.
    pub bytes_per_delivery: f64,
    /// Times from the publish to the last receiver.
    pub latency_p50_ms: f64,
    pub latency_p99_ms: f64,
    pub publications: f64,
    /// Memory of the server in the end.
    pub resident_bytes: f64,
    /// Share of the server's core that others used.
    pub others_share: f64,
}

impl Round<'_> {
    /// By short turns, so that what comes and goes on the machine meets both contenders alike; each at a stretch where
    /// there are not enough descriptors for the subscribers of both.
    ///
    /// # Errors
    /// A failed start, a failed publication, a message too many, or ten seconds without progress.
    pub fn run<const N: usize>(&self, contenders: [Contender; N]) -> Result<[Outcome; N]> {
        let descriptors = machine::raise_descriptor_limit();
        if (N * self.subscribers) as u64 + DESCRIPTORS_SPARE <= descriptors {
            return self.by_turns(contenders);
        }
        let mut outcomes = [Outcome::default(); N];
        for (outcome, contender) in outcomes.iter_mut().zip(contenders) {
            [*outcome] = self.by_turns([contender])?;
        }
        Ok(outcomes)
    }

    fn by_turns<const N: usize>(&self, contenders: [Contender; N]) -> Result<[Outcome; N]> {
        let mut runs = Vec::with_capacity(N);
        for contender in contenders {
            runs.push(self.start(contender).with_context(|| contender.to_string())?);
        }
        let turn = Duration::from_secs_f64(self.seconds) / self.turns;
        for _ in 0..self.turns {
            for run in &mut runs {
                let log_tail = |run: &Run<'_>| format!("server log:\n{}", run.target.log_tail());
                run.measure(turn).map_err(|error| error.context(log_tail(run)))?;
            }
        }
        let mut outcomes = [Outcome::default(); N];
        for (run, outcome) in runs.iter().zip(&mut outcomes) {
            *outcome = run.outcome()?;
        }
        Ok(outcomes)
    }

    /// A contender with its subscribers, warmed up.
    fn start(&self, contender: Contender) -> Result<Run<'_>> {
        let redis = match contender {
            Contender::Redis => Some(RedisServer::start(Some(self.generator_core))?),
            _ => None,
        };
        let binary = match contender {
            Contender::Other { .. } => self.other.context("no other build")?,
            _ => self.binary,
        };
        let mut settings = self.certificate.map_or_else(|| json!({}), Certificate::settings);
        merge(&mut settings, of_transport(self.transport));
        if self.by == By::Grpc {
            let grpc =
                json!({ "enabled": true, "address": "127.0.0.1", "port": 0, "key": API_KEY });
            merge(&mut settings, json!({ "grpc_api": grpc }));
        }
        merge(&mut settings, of_contender(contender, redis.as_ref()));
        let target = match contender {
            Contender::Bare => Target::bare(self.server_core, self.certificate)?,
            _ => Target::fanwire(binary, Some(self.server_core), settings)?,
        };
        let mut run = self.connect(contender, target, redis)?;
        run.publish_for(WARM_UP)?;
        run.ledger.latencies_ms.clear();
        Ok(run)
    }

    fn connect(
        &self,
        contender: Contender,
        mut target: Target,
        redis: Option<RedisServer>,
    ) -> Result<Run<'_>> {
        let mut generator = Generator::new(false)?;
        let transport = match contender {
            Contender::Bare => SubscriberTransport::WebSocket,
            _ => self.transport,
        };
        let tls = self.certificate.map(Certificate::client);
        let subscribe = match contender {
            Contender::Map { .. } => SubscribeForm::Map,
            _ => SubscribeForm::Live,
        };
        generator.set_endpoint(ConnectTarget {
            transport,
            tls,
            subscribe,
            ..ConnectTarget::default()
        });
        let address = target.address();
        // The first connection to the bare loop publishes. A takeover would close that of a publisher.
        let is_fresh = !matches!(contender, Contender::TakenOver { .. });
        let source = is_fresh.then(|| self.source(contender, &target, &generator)).transpose()?;
        let memberships: Vec<_> =
            (0..self.subscribers).map(|number| self.choice.of_subscriber(number)).collect();
        for group in memberships.chunk_by(|one, other| one == other) {
            generator.open(address, group.len(), &self.profile(contender, &group[0]))?;
        }
        let source = match source {
            Some(source) => source,
            None => {
                target.take_over(self.binary, self.takeovers)?;
                self.source(contender, &target, &generator)?
            }
        };
        Ok(Run {
            round: self,
            contender,
            generator,
            source,
            ledger: Ledger::new(memberships),
            schedule: Schedule::new(self.choice.all),
            usage: Usage::default(),
            deliveries: 0,
            bytes: 0,
            target,
            _redis: redis,
        })
    }

    fn source(
        &self,
        contender: Contender,
        target: &Target,
        generator: &Generator,
    ) -> Result<Source> {
        let address = target.address();
        let registry = generator.registry();
        let plain = if self.certificate.is_some() { target.plain_address() } else { address };
        if contender == Contender::Bare {
            return Ok(Source::Requests(Publisher::bare(address, registry)?));
        }
        match Source::stream(self.by, target, plain)? {
            Some(stream) => Ok(stream),
            None => Ok(Source::Requests(Publisher::http(plain, self.outstanding, registry)?)),
        }
    }

    fn profile(&self, contender: Contender, channels: &[usize]) -> Profile {
        let compression = match contender {
            Contender::Fanwire { compression }
            | Contender::Other { compression }
            | Contender::TakenOver { compression }
            | Contender::Stream { compression }
            | Contender::Map { compression } => compression,
            Contender::Pieces | Contender::Answers => true,
            Contender::Bare | Contender::Redis => false,
        };
        Profile {
            plain: contender == Contender::Bare,
            encoding: self.encoding,
            compression,
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
            resident_bytes: of(|outcome| outcome.resident_bytes),
            others_share: of(|outcome| outcome.others_share),
        }
    }
}

struct Run<'a> {
    round: &'a Round<'a>,
    contender: Contender,
    generator: Generator,
    source: Source,
    ledger: Ledger,
    schedule: Schedule,
    /// CPU time of all measured stretches.
    usage: Usage,
    deliveries: u64,
    bytes: u64,
    target: Target,
    _redis: Option<RedisServer>,
}

impl Run<'_> {
    /// One more stretch.
    fn measure(&mut self, stretch: Duration) -> Result<()> {
        let deliveries = self.ledger.deliveries;
        let bytes = self.generator.bytes_received();
        let meter = Meter::start(self.target.pid(), self.round.server_core)?;
        self.publish_for(stretch)?;
        self.usage += meter.stop()?;
        self.deliveries += self.ledger.deliveries - deliveries;
        self.bytes += self.generator.bytes_received() - bytes;
        Ok(())
    }

    fn outcome(&self) -> Result<Outcome> {
        let deliveries = self.deliveries as f64;
        let latencies = &self.ledger.latencies_ms;
        Ok(Outcome {
            per_cpu_second: deliveries / self.usage.cpu_seconds,
            bytes_per_delivery: self.bytes as f64 / deliveries,
            latency_p50_ms: percentile(latencies, 0.5),
            latency_p99_ms: percentile(latencies, 0.99),
            publications: latencies.len() as f64,
            resident_bytes: machine::resident_bytes(self.target.pid())? as f64,
            others_share: self.usage.others_share(),
        })
    }

    /// Publishes for this long, then waits until everything has arrived.
    fn publish_for(&mut self, stretch: Duration) -> Result<()> {
        let started = Instant::now();
        let mut progress = StallTimer::default();
        let mut published = 0;
        loop {
            let now = Instant::now();
            if now - started < stretch {
                let rate = self.round.rate.unwrap_or(f64::INFINITY);
                // The first one is due at once.
                let due = ((now - started).as_secs_f64() * rate) as u64;
                published += self.publish(now, due.saturating_add(1).saturating_sub(published))?;
            } else if self.ledger.open.is_empty() && self.source.is_idle() {
                return Ok(());
            }
            let has_event = self.generator.turn(Some(SPIN), &mut self.ledger)?;
            self.source.receive(has_event)?;
            progress.check(self.ledger.deliveries, || self.ledger.missing())?;
        }
    }

    /// Publishes as long as there are fewer outstanding than may be, and no more than are due. Returns how many.
    fn publish(&mut self, now: Instant, due: u64) -> Result<u64> {
        let mut published = 0;
        while published < due
            && self.ledger.open.len() < self.round.outstanding
            && self.source.may_publish()
        {
            published += 1;
            let (channel, number) = self.schedule.pick();
            let publications = &self.round.publications[channel];
            let publication = &publications[number % publications.len()];
            self.ledger.published(channel, now);
            let is_trigger = matches!(
                self.contender,
                Contender::Bare | Contender::Answers | Contender::Map { .. }
            );
            self.source.publish(publication, is_trigger)?;
        }
        Ok(published)
    }
}

/// Settings of a contender's server.
fn of_contender(contender: Contender, redis: Option<&RedisServer>) -> Value {
    match (contender, redis) {
        (Contender::Pieces | Contender::Answers, _) => answers::settings(),
        (Contender::Stream { .. }, _) => map::stream(),
        (Contender::Map { .. }, _) => map::map(),
        (_, Some(redis)) => json!({ "engine": redis.engine() }),
        _ => json!({}),
    }
}

/// Settings of a server with such subscribers.
fn of_transport(transport: SubscriberTransport) -> Value {
    match transport {
        // Without pings, to which these subscribers have no answer.
        SubscriberTransport::EventStream => {
            json!({ "sse": { "enabled": true }, "client": { "ping_interval": "1h" } })
        }
        // With ids.
        SubscriberTransport::UniEventStream => json!({
            "uni_sse": { "enabled": true },
            "client": { "ping_interval": "1h" },
            "channel": { "without_namespace": {
                "history_size": 10, "history_ttl": "1h", "force_recovery": true,
            } },
        }),
        SubscriberTransport::UniWebSocket => json!({ "uni_websocket": { "enabled": true } }),
        _ => json!({}),
    }
}

/// Descriptors of sockets and files that are no subscribers.
const DESCRIPTORS_SPARE: u64 = 100;
const WARM_UP: Duration = Duration::from_millis(500);
/// The generator never sleeps while it measures: waking it for every frame would cost the server, not the generator.
const SPIN: Duration = Duration::ZERO;
