//! Scenario `fanout`: deliveries per server CPU-second, bytes and latency, as a ratio of two contenders in turn.
//! In: subscribers, message, publications outstanding → out: a table; not passed below `--bar`.
//! Uses `target` for processes and `round` for each measurement; both contenders get the same subscribers.
//! Changed here: what is compared and shown; how one round is measured lives in `round`.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Args;
use std::cmp::Ordering::Greater;
use std::fmt;
use std::path::PathBuf;

use crate::bare;
use crate::certificate::Certificate;
use crate::corpus::files;
use crate::publish::grpc;
use crate::setup::Setup;
use crate::stats::{grouped, judge, median};
use crate::target::API_KEY;
use fanwire_load::generator::SubscriberTransport;
use fanwire_load::generator::messages::Encoding;
use fanwire_load::generator::publisher::publish_request;
use fanwire_load::machine;
use round::{Outcome, Round};
use schedule::{Choice, channel};
use source::By;

pub mod answers;
pub mod map;
pub mod round;
pub mod schedule;
pub mod source;

/// Deliveries per server CPU-second against the bare send loop, or with compression against without.
#[derive(Args)]
pub struct Fanout {
    /// Connections.
    #[arg(long, default_value_t = 1_000)]
    subscribers: usize,
    /// Channels that each of them subscribes to; each publication goes to one of all channels, at random.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    channels: u16,
    /// Channels that there are; each subscriber has another choice of them. By default those it subscribes to.
    #[arg(long, value_name = "COUNT")]
    of: Option<u16>,
    /// Bytes of each publication's data.
    #[arg(long, default_value_t = 200)]
    bytes: usize,
    /// How publications reach Fanwire; the bare loop has a way of its own.
    #[arg(long, value_enum, default_value_t = By::Http)]
    by: By,
    /// Publications under way at once; the next one starts when all subscribers have one.
    #[arg(long, default_value_t = 1)]
    outstanding: usize,
    /// Publications per second of each contender, at most; by default as many as possible.
    #[arg(long)]
    rate: Option<f64>,
    /// Subscribers negotiate permessage-deflate, or gzip.
    #[arg(long)]
    compression: bool,
    /// Compare compression on to off, instead of Fanwire to the bare loop.
    #[arg(long, conflicts_with = "compression")]
    compare_compression: bool,
    /// Compare the bare loop to itself: the ratio shows how much this machine's noise moves it.
    #[arg(long, conflicts_with = "compare_compression")]
    noise: bool,
    /// Compare publications through a Redis of the run's own to those in memory.
    #[arg(long, conflicts_with_all = ["compression", "compare_compression", "noise"])]
    compare_engines: bool,
    /// Subscribers of Fanwire read event streams, with `--compression` of gzip.
    #[arg(long, conflicts_with_all = ["noise", "compare_engines"])]
    event_streams: bool,
    /// Subscribers of Fanwire read event streams of clients without commands, with ids; with `--compression` of gzip.
    #[arg(long, conflicts_with_all = ["noise", "compare_engines", "event_streams", "uni_websocket"])]
    uni_event_streams: bool,
    /// Subscribers of Fanwire have unidirectional WebSockets, whose frames have no envelope.
    #[arg(long, conflicts_with_all = ["compression", "compare_compression", "noise", "compare_engines", "event_streams"])]
    uni_websocket: bool,
    /// Compare answers of 4,000 characters that grow by `append` to their 800 pieces published alone, both in context.
    #[arg(long, conflicts_with_all = ["compression", "compare_compression", "noise", "compare_engines", "uni_websocket"])]
    answers: bool,
    /// Compare changes of a map with so many keys to publications of a stream with positions.
    #[arg(long, value_name = "KEYS", conflicts_with_all = ["compare_compression", "noise", "compare_engines", "event_streams", "uni_websocket", "answers", "against"])]
    map: Option<usize>,
    /// Subscribers of both contenders speak TLS; publications do not.
    #[arg(long, conflicts_with = "compare_engines")]
    tls: bool,
    /// Compare Fanwire to another build of it, with `--compression` both in context.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["answers", "compare_compression", "noise", "compare_engines"])]
    against: Option<PathBuf>,
    /// Compare Fanwire after so many takeovers with all subscribers to a fresh process.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["answers", "map", "compare_compression", "noise", "compare_engines", "against", "tls"])]
    takeovers: Option<usize>,
    /// Publish the messages of this file instead of made-up data: `*.jsonl` a JSON text a line, `*.bin` bytes with their
    /// length before each (u32, little-endian), to subscribers that speak Protobuf.
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// Measured seconds of each contender in each round.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Seconds after which it is the other contender's turn.
    #[arg(long, default_value_t = 0.1)]
    turn: f64,
    /// Rounds; each starts both contenders again.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Fail when the median ratio is below this.
    #[arg(long)]
    bar: Option<f64>,
    #[command(flatten)]
    setup: Setup,
}

/// The servers that are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contender {
    Bare,
    Fanwire {
        compression: bool,
    },
    /// Another build of it.
    Other {
        compression: bool,
    },
    /// The same after takeovers.
    TakenOver {
        compression: bool,
    },
    /// Fanwire in context, with pieces of answers.
    Pieces,
    /// The same with answers that grow.
    Answers,
    /// Fanwire without compression, whose publications come back to it through Redis.
    Redis,
    /// Fanwire with a stream that has positions.
    Stream {
        compression: bool,
    },
    /// Fanwire with a map that has as many changes.
    Map {
        compression: bool,
    },
}

/// One publication ready for both contenders.
pub struct Publication {
    /// The request to the HTTP API.
    pub request: Vec<u8>,
    /// The same as a publish request, in JSON and as a command in Protobuf.
    pub body: String,
    pub command: Bytes,
    /// The frame that the bare loop sends, as long as Fanwire's uncompressed one. For [`Contender::Answers`] and
    /// [`Contender::Map`] another request.
    pub trigger: Vec<u8>,
}

impl Fanout {
    /// True when the bar is met or none was set.
    ///
    /// # Errors
    /// A server that does not start, or anything wrong that a subscriber receives.
    pub fn run(self) -> Result<bool> {
        machine::raise_descriptor_limit();
        self.setup.pin_generator()?;
        let binary = if self.noise { PathBuf::new() } else { self.setup.binary()? };
        let choice = self.choice()?;
        let (is_binary, payloads) = self.payloads()?;
        ensure!(!is_binary || !self.has_bare(), "the bare loop has no Protobuf{INSTEAD}");
        let transport = self.transport();
        ensure!(!is_binary || !transport.is_events(), "event streams have no Protobuf");
        ensure!(!is_binary || self.by != By::Grpc, "--by grpc sends data in JSON alone");
        ensure!(!self.answers || self.by == By::Http, "--answers come by HTTP");
        let publications = if self.answers {
            vec![answers::pieces()]
        } else if let Some(keys) = self.map {
            ensure!(!is_binary && choice.all == 1 && self.by == By::Http, MAP_BY);
            vec![map::changes(&channel(0), &payloads, keys)]
        } else {
            publications(&payloads, choice.all, self.uni_websocket)?
        };
        let certificate = self.tls.then(Certificate::new).transpose()?;
        let round = Round {
            binary: &binary,
            other: self.against.as_deref(),
            publications: &publications,
            choice,
            transport,
            encoding: if is_binary { Encoding::Protobuf } else { Encoding::Json },
            subscribers: self.subscribers,
            outstanding: self.outstanding,
            by: self.by,
            rate: self.rate,
            seconds: self.seconds,
            turns: ((self.seconds / self.turn).ceil().min(TURNS_MAX) as u32).max(1),
            server_core: self.setup.server_core,
            generator_core: self.setup.generator_core,
            certificate: certificate.as_ref(),
            takeovers: self.takeovers.unwrap_or_default(),
        };
        let contenders = self.contenders();
        println!("{self}\n\n{HEADER}");
        let mut outcomes = Vec::new();
        for number in 1..=self.rounds {
            for (contender, outcome) in contenders.into_iter().zip(round.run(contenders)?) {
                println!("{number:>5}  {}", row(contender, &outcome));
                outcomes.push(outcome);
            }
        }
        Ok(self.judge(contenders, &outcomes))
    }

    fn contenders(&self) -> [Contender; 2] {
        let fanwire = |compression| Contender::Fanwire { compression };
        if self.noise {
            return [Contender::Bare; 2];
        }
        if self.answers {
            return [Contender::Pieces, Contender::Answers];
        }
        let compression = self.compression;
        if self.map.is_some() {
            return [Contender::Stream { compression }, Contender::Map { compression }];
        }
        if self.takeovers.is_some() {
            return [fanwire(compression), Contender::TakenOver { compression }];
        }
        match (self.compare_compression, self.compare_engines, &self.against) {
            (true, ..) => [fanwire(false), fanwire(true)],
            (_, true, _) => [fanwire(false), Contender::Redis],
            (.., Some(_)) => [Contender::Other { compression }, fanwire(compression)],
            _ => [Contender::Bare, fanwire(compression)],
        }
    }

    /// How subscribers of Fanwire receive.
    fn transport(&self) -> SubscriberTransport {
        match (self.event_streams, self.uni_event_streams, self.uni_websocket) {
            (true, ..) => SubscriberTransport::EventStream,
            (_, true, _) => SubscriberTransport::UniEventStream,
            (.., true) => SubscriberTransport::UniWebSocket,
            _ => SubscriberTransport::WebSocket,
        }
    }

    fn has_bare(&self) -> bool {
        self.contenders().contains(&Contender::Bare)
    }

    fn choice(&self) -> Result<Choice> {
        let each = usize::from(self.channels);
        let all = self.of.map_or(each, usize::from);
        ensure!(each <= all, "--channels {each}: there are only {all} (--of)");
        ensure!(all == 1 || !self.answers, "--answers are in one channel");
        ensure!(all == 1 || !self.has_bare(), "the bare loop has one channel{INSTEAD}");
        Ok(Choice { each, all })
    }

    /// Fields of publish requests with the data, and whether that is binary.
    fn payloads(&self) -> Result<(bool, Vec<String>)> {
        let Some(path) = &self.corpus else {
            let data = made_up_payloads(self.bytes);
            return Ok((
                false,
                data.iter().map(|data| files::payload(false, data.as_bytes())).collect(),
            ));
        };
        let (is_binary, messages) = files::read(path)?
            .with_context(|| format!("{}: neither *.jsonl nor *.bin", path.display()))?;
        Ok((is_binary, messages.iter().map(|message| files::payload(is_binary, message)).collect()))
    }

    /// Prints medians and the ratio of each round's pair; true unless the bar is missed.
    fn judge(&self, contenders: [Contender; 2], outcomes: &[Outcome]) -> bool {
        println!();
        for (place, contender) in contenders.into_iter().enumerate() {
            let own: Vec<Outcome> = outcomes.iter().skip(place).step_by(2).copied().collect();
            println!("median {}", row(contender, &Outcome::median(&own)));
        }
        let ratios =
            outcomes.chunks_exact(2).map(|pair| pair[1].per_cpu_second / pair[0].per_cpu_second);
        let ratio = median(ratios);
        let (passed, verdict) = judge(ratio, Greater, self.bar);
        println!(
            "\nratio of deliveries per CPU-second, {} / {}: {ratio:.3}{verdict}",
            contenders[1], contenders[0]
        );
        if outcomes.iter().any(|outcome| outcome.others_share > NOISY_SHARE) {
            println!(
                "noisy: others used more than {:.0} % of the server's core",
                NOISY_SHARE * 100.0
            );
        }
        passed
    }
}

impl fmt::Display for Fanout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = match &self.corpus {
            Some(path) => format!("messages of {}", path.display()),
            None => format!("{} B", self.bytes),
        };
        write!(
            f,
            "fanout{}: {} subscribers by {:?} of {} of {} channels, {data} by {:?}, {} outstanding, {} rounds of {} s by turns of {}; server on core {}, generator on core {}",
            if self.tls { " with TLS" } else { "" },
            grouped(self.subscribers as f64),
            self.transport(),
            self.channels,
            self.of.unwrap_or(self.channels),
            self.by,
            self.outstanding,
            self.rounds,
            self.seconds,
            self.turn,
            self.setup.server_core,
            self.setup.generator_core,
        )
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Contender::Bare => "bare loop",
            Contender::Other { .. } => "other build",
            Contender::Fanwire { compression: false } => "fanwire",
            Contender::Fanwire { compression: true } => "fanwire, compressed",
            Contender::TakenOver { .. } => "taken over",
            Contender::Redis => "fanwire, Redis",
            Contender::Pieces => "pieces alone",
            Contender::Answers => "answers that grow",
            Contender::Stream { .. } => "publications",
            Contender::Map { .. } => "changes of a map",
        })
    }
}

fn row(contender: Contender, outcome: &Outcome) -> String {
    format!(
        "{contender:<20} {:>16} {:>11.3} {:>11.1} {:>8.2} {:>8.2} {:>13} {:>7.1}",
        grouped(outcome.per_cpu_second),
        1e6 / outcome.per_cpu_second,
        outcome.bytes_per_delivery,
        outcome.latency_p50_ms,
        outcome.latency_p99_ms,
        grouped(outcome.publications),
        outcome.others_share * 100.0,
    )
}

/// Returns the publications of each channel in their order: an equal part of the payloads, which are fields of requests.
/// Bare pushes have no envelope.
pub(crate) fn publications(
    payloads: &[String],
    channels: usize,
    are_bare: bool,
) -> Result<Vec<Vec<Publication>>> {
    ensure!(payloads.len() >= channels, "{channels} channels need as many payloads");
    let publication = |channel: &str, field: &String| {
        let push = format!(r#"{{"channel":"{channel}","pub":{{{field}}}}}"#);
        let envelope_bytes = if are_bare { 0 } else { r#"{"push":}"#.len() };
        Publication {
            request: publish_request(channel, field, API_KEY),
            body: format!("{{\"channel\":\"{channel}\",{field}}}"),
            command: command(channel, field),
            trigger: bare::trigger(push.len() + envelope_bytes),
        }
    };
    let parts = payloads.chunks(payloads.len() / channels).take(channels).enumerate();
    let of_channel = |(number, part): (usize, &[String])| {
        part.iter().map(|field| publication(&channel(number), field)).collect()
    };
    Ok(parts.map(of_channel).collect())
}

/// A command of a gRPC stream. `field` is that of a request in JSON; binary data have none.
fn command(channel: &str, field: &str) -> Bytes {
    let data = field.strip_prefix("\"data\":").unwrap_or_default();
    let request = [grpc::field(1, channel.as_bytes()), grpc::field(2, data.as_bytes())].concat();
    grpc::framed(&grpc::field(4, &request))
}

/// JSON objects of exactly this many bytes (at least 24) with text that neither repeats nor is pure noise.
pub fn made_up_payloads(bytes: usize) -> Vec<String> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut letter = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[(state >> 59) as usize])
    };
    (100..164)
        .map(|number| {
            let start = format!("{{\"n\":{number},\"text\":\"");
            let length = bytes.saturating_sub(start.len() + 2).max(1);
            start + &(0..length).map(|_| letter()).collect::<String>() + "\"}"
        })
        .collect()
}

const MAP_BY: &str = "--map has JSON in one channel, by HTTP";
const TURNS_MAX: f64 = 10_000.0;
const INSTEAD: &str = ": say --compare-compression, --compare-engines or --against";
const HEADER: &str = "round  contender            deliveries/CPU-s  µs/delivery  B/delivery   p50 ms   p99 ms  publications  others %";
const LETTERS: &[u8; 32] = b"etaoin shrdlu etaoin shrdlu 0123";
/// Above this share of the server's core for others, a run is noisy.
const NOISY_SHARE: f64 = 0.05;

#[cfg(test)]
mod tests;
