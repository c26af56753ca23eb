//! Scenario `broadcast`: how long one call that publishes into many channels takes, as a ratio to what it needs at least.
//! In: an engine, numbers of channels → out: a table of medians; not passed above `--bar` or `--limit-us`.
//! Uses `target`, `redis` and `awake` for processes, `caller` for the one connection, `yardstick` for what is needed at least.
//! Changed here: what is compared and shown; what is needed at least lives in `yardstick`.

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use std::path::Path;
use std::time::Instant;

use crate::awake::Awake;
use crate::caller::Caller;
use crate::fanout::made_up_payloads;
use crate::redis::RedisServer;
use crate::setup::Setup;
use crate::stats::{grouped, limit, median, percentile};
use crate::target::{API_KEY, Target};
use fanwire_load::generator::publisher::{answer_length, http_request};
use yardstick::Yardstick;

pub mod yardstick;

/// Time of a broadcast by the server API to channels without subscribers, over one connection.
#[derive(Args)]
pub struct Broadcast {
    /// The engine that holds the publications. Redis is started for the run.
    #[arg(long, default_value = "memory")]
    engine: Engine,
    /// Channels of one call; each number is a row without history and one with it.
    #[arg(long, value_delimiter = ',', default_value = "1,100,5000")]
    channels: Vec<usize>,
    /// Bytes of the data, which is JSON.
    #[arg(long, default_value_t = 100)]
    bytes: usize,
    /// Publications per measurement: a call to many channels is made less often.
    #[arg(long, default_value_t = 20_000)]
    publications: usize,
    /// Measurements of every row, one row after the other.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Fail when the last ratio of a row without history is above this: one for all, or one for each number of channels.
    #[arg(long, value_delimiter = ',', value_name = "RATIO")]
    bar: Vec<f64>,
    /// Fail when the median of a row without history takes more µs than this: one for each number of channels.
    #[arg(long, value_delimiter = ',', value_name = "US")]
    limit_us: Vec<f64>,
    /// Keep both cores from sleeping: what waking them costs is then part of no figure.
    #[arg(long)]
    awake: bool,
    #[command(flatten)]
    setup: Setup,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Engine {
    Memory,
    Redis,
}

/// So many channels, with history or without.
#[derive(Clone, Copy, Debug)]
struct Case {
    channels: usize,
    has_history: bool,
}

/// The servers of a run.
struct Stage {
    redis: Option<RedisServer>,
    plain: Target,
    keeping: Target,
}

/// The result of one measurement, in µs.
struct Sample {
    echo: f64,
    /// Plain PUBLISH by redis-benchmark, where there is a Redis.
    redis: Option<f64>,
    calls: Vec<f64>,
}

impl Sample {
    fn p50(&self) -> f64 {
        median(self.calls.iter().copied())
    }
}

impl Broadcast {
    /// True when every bar and limit is kept, or none was set.
    ///
    /// # Errors
    /// A server that does not start, or an answer that is not a result for every channel.
    pub fn run(self) -> Result<bool> {
        self.check()?;
        self.setup.pin_generator()?;
        let cores = [self.setup.server_core, self.setup.generator_core];
        let awake = self.awake.then(|| Awake::keep(&std::env::current_exe()?, &cores));
        let _awake = awake.transpose()?;
        let stage = self.stage(&self.setup.binary()?)?;
        println!(
            "broadcast: {:?} engine, {} B, {} rounds of {} publications; server on core {}, caller{} on core {}{}\n",
            self.engine,
            self.bytes,
            self.rounds,
            grouped(self.publications as f64),
            self.setup.server_core,
            if stage.redis.is_some() { " and Redis" } else { "" },
            self.setup.generator_core,
            if self.awake { ", both kept awake" } else { "" },
        );
        let cases: Vec<Case> =
            self.channels.iter().flat_map(|channels| Case::both(*channels)).collect();
        let mut rows: Vec<Vec<Sample>> = cases.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.rounds {
            for (case, row) in cases.iter().zip(&mut rows) {
                let target = stage.target(*case);
                let sample = self
                    .measure(&stage, *case)
                    .with_context(|| format!("{case:?}; server log:\n{}", target.log_tail()))?;
                row.push(sample);
            }
        }
        println!("{}", self.head());
        let kept = cases.iter().zip(&rows).map(|(case, row)| self.judge(*case, row));
        Ok(kept.fold(true, |all, kept| all & kept))
    }

    fn check(&self) -> Result<()> {
        let rows = self.channels.len();
        ensure!(self.channels.iter().all(|count| *count > 0), "--channels 0: nothing to call");
        ensure!([0, 1, rows].contains(&self.bar.len()), "--bar: one, or one for each of {rows}");
        ensure!([0, rows].contains(&self.limit_us.len()), "--limit-us: one for each of {rows}");
        Ok(())
    }

    fn stage(&self, binary: &Path) -> Result<Stage> {
        let redis = match self.engine {
            Engine::Memory => None,
            Engine::Redis => Some(RedisServer::start(Some(self.setup.generator_core))?),
        };
        let engine =
            redis.as_ref().map_or(serde_json::json!({ "type": "memory" }), RedisServer::engine);
        let history = serde_json::json!({ "history_size": 10, "history_ttl": "300s" });
        let start = |channel| {
            let channel = serde_json::json!({ "without_namespace": channel });
            let settings = serde_json::json!({ "channel": channel, "engine": engine });
            Target::fanwire(binary, Some(self.setup.server_core), settings)
        };
        Ok(Stage { plain: start(serde_json::json!({}))?, keeping: start(history)?, redis })
    }

    /// Calls again and again, and measures the yardstick right before.
    fn measure(&self, stage: &Stage, case: Case) -> Result<Sample> {
        let payload = &made_up_payloads(self.bytes)[0];
        let call = Call::new(case.channels, self.bytes);
        let target = stage.target(case);
        let answer_bytes = call.checked(&mut Caller::open(target.address())?)?;
        let calls = (self.publications / case.channels).max(CALLS_MIN);
        let core = self.setup.server_core;
        let yardstick = Yardstick::Echo { request: &call.request, answer_bytes, calls };
        let echo = yardstick.us(core)?;
        let yardstick = stage.redis.as_ref().map(|redis| Yardstick::Redis {
            redis,
            payload,
            channels: case.channels,
            publications: self.publications,
        });
        let redis = yardstick.map(|yardstick| yardstick.us(core)).transpose()?;
        // Not before: the server closes a connection on which nothing comes for as long as yardsticks may take.
        let mut caller = Caller::open(target.address())?;
        for _ in 0..calls / WARM_UP_PART {
            call.micros(&mut caller)?;
        }
        let calls = (0..calls).map(|_| call.micros(&mut caller)).collect::<Result<_>>()?;
        Ok(Sample { echo, redis, calls })
    }

    /// The heads of the columns of a row.
    fn head(&self) -> String {
        let (us, ratio) = match self.engine {
            Engine::Memory => ("", ""),
            Engine::Redis => ("  redis-bench. µs", "    / redis-bench."),
        };
        format!("channels  history     echo µs{us}      p50 µs      p99 µs    p50 / echo{ratio}")
    }

    /// Prints a row; whether it kept its bar and its limit.
    fn judge(&self, case: Case, row: &[Sample]) -> bool {
        let of_row = |figure: &dyn Fn(&Sample) -> f64| median(row.iter().map(figure));
        let p50 = of_row(&Sample::p50);
        let all: Vec<f64> = row.iter().flat_map(|sample| &sample.calls).copied().collect();
        let to_echo = of_row(&|sample| sample.p50() / sample.echo);
        let redis = |sample: &Sample| sample.redis.unwrap_or(f64::NAN);
        let to_redis = of_row(&|sample| sample.p50() / redis(sample));
        let place = self.channels.iter().position(|channels| *channels == case.channels);
        let of = |limits: &[f64]| {
            let limit = limits.get(place?).or_else(|| limits.first())?;
            (!case.has_history).then_some(*limit)
        };
        let (is_quick, quick) = limit(p50, of(&self.limit_us));
        print!("{:>8}  {:>7}  ", grouped(case.channels as f64), case.history());
        print!("{:>10.1}", of_row(&|sample| sample.echo));
        if self.engine == Engine::Redis {
            print!("{:>17.1}", of_row(&redis));
        }
        print!("{p50:>12.1}{quick}{:>12.1}", percentile(&all, 0.99));
        print!("{to_echo:>14.2}");
        let judged = match self.engine {
            Engine::Memory => to_echo,
            Engine::Redis => {
                print!("{to_redis:>18.2}");
                to_redis
            }
        };
        let (is_met, verdict) = limit(judged, of(&self.bar));
        println!("{verdict}");
        is_met && is_quick
    }
}

/// A call that publishes into so many channels.
pub(crate) struct Call {
    request: Vec<u8>,
    channels: usize,
}

impl Call {
    pub(crate) fn new(channels: usize, bytes: usize) -> Self {
        let payload = &made_up_payloads(bytes)[0];
        let names = (0..channels).map(|number| format!("\"{}\"", name(number)));
        let list = names.collect::<Vec<_>>().join(",");
        let body = format!("{{\"channels\":[{list}],\"data\":{payload}}}");
        Self { request: http_request("broadcast", &body, API_KEY), channels }
    }

    /// Opens a connection whose first answer was right.
    ///
    /// # Errors
    /// As [`checked`](Self::checked).
    pub(crate) fn open(&self, target: &Target) -> Result<Caller> {
        let mut caller = Caller::open(target.address())?;
        self.checked(&mut caller).with_context(|| format!("server log:\n{}", target.log_tail()))?;
        Ok(caller)
    }

    /// Returns the bytes of an answer that has a result for each channel.
    ///
    /// # Errors
    /// An answer that has not, or none.
    fn checked(&self, caller: &mut Caller) -> Result<usize> {
        let answer = ask(caller, &self.request)?;
        check_results(&answer, self.channels)?;
        Ok(answer.len())
    }

    /// Returns the time of one call.
    ///
    /// # Errors
    /// No answer.
    pub(crate) fn micros(&self, caller: &mut Caller) -> Result<f64> {
        let began = Instant::now();
        ask(caller, &self.request)?;
        Ok(began.elapsed().as_secs_f64() * 1e6)
    }
}

impl Case {
    fn both(channels: usize) -> [Self; 2] {
        [false, true].map(|has_history| Self { channels, has_history })
    }

    fn history(self) -> &'static str {
        if self.has_history { "kept" } else { "none" }
    }
}

impl Stage {
    fn target(&self, case: Case) -> &Target {
        if case.has_history { &self.keeping } else { &self.plain }
    }
}

/// The name of a channel, of about the length that names have.
fn name(number: usize) -> String {
    format!("broadcast-{number}")
}

fn ask(caller: &mut Caller, request: &[u8]) -> Result<Vec<u8>> {
    caller.send(request)?;
    caller.take(whole_length)
}

/// The length of an answer, which may come in chunks (RFC 9112 §7.1); no other answer is behind it.
fn whole_length(bytes: &[u8]) -> Result<Option<usize>> {
    if !is_chunked(bytes) {
        return answer_length(bytes);
    }
    Ok(bytes.ends_with(b"\r\n0\r\n\r\n").then_some(bytes.len()))
}

fn is_chunked(answer: &[u8]) -> bool {
    let head = &answer[..answer.len().min(HEAD_BYTES_MAX)];
    String::from_utf8_lossy(head).to_ascii_lowercase().contains("transfer-encoding: chunked")
}

/// The body of a whole answer, out of its chunks.
///
/// # Errors
/// No HTTP.
fn body(answer: &[u8]) -> Result<Vec<u8>> {
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").context("a head")?;
    let mut rest = &answer[end + 4..];
    if !is_chunked(answer) {
        return Ok(rest.to_vec());
    }
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|part| part == b"\r\n").context("a chunk's size")?;
        let length = usize::from_str_radix(str::from_utf8(&rest[..line])?, 16)?;
        let chunk = rest.get(line + 2..line + 2 + length).context("a whole chunk")?;
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(chunk);
        rest = rest.get(line + 2 + length + 2..).context("a next chunk")?;
    }
}

/// # Errors
/// Something else than one result for each channel.
fn check_results(answer: &[u8], channels: usize) -> Result<()> {
    let json: serde_json::Value = serde_json::from_slice(&body(answer)?)?;
    let responses = json["result"]["responses"].as_array().context("an answer with responses")?;
    let good = responses.iter().filter(|response| response["result"].is_object()).count();
    ensure!(
        good == channels && responses.len() == channels,
        "{good} results of {channels}: {json}"
    );
    Ok(())
}

/// More than the head of an answer of either server.
const HEAD_BYTES_MAX: usize = 1_024;
/// Fewest calls of a measurement.
const CALLS_MIN: usize = 20;
/// Calls that are not measured, as a part of those that are.
const WARM_UP_PART: usize = 5;

#[cfg(test)]
mod tests;
