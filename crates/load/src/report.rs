//! The report of a run: what a reader needs to judge its figures, and whether they count.
//! In: a plan, records and counts → out: a value that is written as JSON, as text (`text`) and as a page (`page`).
//! Pure but for facts about the machine. Never: files.
//! Changed here: what a report has; units are in the names of its fields.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::check::{Group, GroupCounts};
use crate::choice::Popularity;
use crate::generator::messages::Encoding;
use crate::machine::{self, MachineFacts};
use crate::plan::{Pace, Plan, PublishMethod};
use crate::record::{Recorder, RunPart, Second, histogram, milliseconds};
use crate::usage::Usage;

mod page;
mod plot;
mod text;

pub use page::time_plot;
pub use text::grouped;

/// A run and its figures.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this program.
    pub version: &'static str,
    /// Seconds since 1970, at the end of the run.
    pub unix_seconds: u64,
    pub machine: MachineFacts,
    pub server: ServerFacts,
    pub configuration: Configuration,
    #[serde(flatten)]
    pub ending: Ending,
    /// Reasons why the figures do not count: the generator was too slow. Empty for a valid run.
    pub invalid: Vec<String>,
    /// Faults of the server. Empty for a right one.
    pub faults: Vec<String>,
    pub measured_seconds: f64,
    pub published: u64,
    /// Publications that were due and that the server had not accepted at the end.
    pub unsent: u64,
    pub planned_rate: Option<f64>,
    pub achieved_rate: f64,
    /// Deliveries to regular connections.
    pub deliveries: u64,
    pub deliveries_per_second: f64,
    pub bytes_per_delivery: Option<f64>,
    /// Delay from the planned time of a publication to its arrival at each regular connection.
    pub latency: Percentiles,
    /// Delay from the planned time of a publication to its last arrival.
    pub last_arrival: Percentiles,
    pub parts: Vec<PartFigures>,
    pub regular: GroupCounts,
    pub slow: GroupCounts,
    pub stopped: GroupCounts,
    pub generator: GeneratorFacts,
    pub seconds: Vec<Second>,
    #[serde(skip)]
    histogram: Histogram<u64>,
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "ending")]
pub enum Ending {
    Complete,
    Interrupted,
    /// The server could not be used any more.
    Failed {
        reason: String,
    },
}

#[derive(Clone, Debug, Serialize)]
pub struct ServerFacts {
    pub url: String,
    /// Version in the connect reply.
    pub version: Option<String>,
    pub pid: Option<u32>,
    pub cpu_seconds: Option<f64>,
    pub cpu_share: Option<f64>,
    pub deliveries_per_cpu_second: Option<f64>,
    pub resident_bytes_before: Option<u64>,
    pub resident_bytes_after: Option<u64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct GeneratorFacts {
    /// Delay from the planned time of a publication until the generator noticed that it was due.
    pub lag: Percentiles,
    pub busy_share: f64,
    pub cpu_seconds: Option<f64>,
}

/// Options of the plan.
#[derive(Clone, Debug, Serialize)]
pub struct Configuration {
    pub encoding: &'static str,
    pub compression: bool,
    pub connections: usize,
    pub slow: usize,
    pub slow_bytes_per_second: usize,
    pub stopped: usize,
    pub churn_per_second: f64,
    pub channels: u32,
    pub subscriptions: u32,
    pub popularity: Popularity,
    pub publish: &'static str,
    pub pace: Pace,
    pub latest: bool,
    pub payload: String,
    pub payload_bytes: f64,
    /// Entropy of single bytes.
    pub payload_bits_per_byte: f64,
    pub warm_up_seconds: f64,
    pub seconds: f64,
}

/// Milliseconds.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize)]
pub struct Percentiles {
    pub count: u64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

/// A part of the measured time, to see how far figures spread.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PartFigures {
    pub published: u64,
    pub latency: Percentiles,
}

impl From<&Histogram<u64>> for Percentiles {
    fn from(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| milliseconds(histogram.value_at_quantile(quantile));
        Self {
            count: histogram.len(),
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: milliseconds(histogram.max()),
        }
    }
}

impl Report {
    pub(crate) fn new(
        plan: &Plan,
        ending: Ending,
        version: Option<String>,
        recorder: &Recorder,
        counts: [GroupCounts; Group::ALL.len()],
        usage: Usage,
        unsent: u64,
    ) -> Self {
        let published: u64 = recorder.parts().iter().map(|part| part.published).sum();
        let latency = sum(recorder.parts(), |part| &part.latency);
        let per_second = |count: u64| {
            if usage.seconds > 0.0 { count as f64 / usage.seconds } else { 0.0 }
        };
        let [regular, slow, stopped] = counts;
        let mut report = Self {
            version: env!("CARGO_PKG_VERSION"),
            unix_seconds: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
            machine: machine::facts(),
            server: ServerFacts::new(plan, version, usage),
            configuration: Configuration::new(plan),
            ending,
            invalid: Vec::new(),
            faults: Vec::new(),
            measured_seconds: usage.seconds,
            published,
            unsent,
            planned_rate: match plan.pace {
                Pace::Open { rate } => Some(rate),
                Pace::Closed { .. } => None,
            },
            achieved_rate: per_second(published),
            deliveries: usage.deliveries,
            deliveries_per_second: per_second(usage.deliveries),
            bytes_per_delivery: (usage.deliveries > 0)
                .then(|| usage.bytes as f64 / usage.deliveries as f64),
            last_arrival: Percentiles::from(&sum(recorder.parts(), |part| &part.last)),
            latency: Percentiles::from(&latency),
            parts: recorder.parts().iter().map(PartFigures::from).collect(),
            regular,
            slow,
            stopped,
            generator: GeneratorFacts {
                lag: Percentiles::from(&recorder.lag),
                busy_share: usage.busy_share,
                cpu_seconds: usage.generator_cpu_seconds,
            },
            seconds: recorder.seconds().to_vec(),
            histogram: latency,
        };
        report.invalid = report.reasons_against();
        report.faults = report.found_faults();
        report
    }

    /// Something was lost, doubled, reordered or broken, or the run could not go on.
    pub fn has_failed(&self) -> bool {
        !self.faults.is_empty()
    }

    /// The latencies of deliveries, in nanoseconds.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    pub fn groups(&self) -> [(Group, &GroupCounts); Group::ALL.len()] {
        [
            (Group::Regular, &self.regular),
            (Group::Slow, &self.slow),
            (Group::Stopped, &self.stopped),
        ]
    }

    /// # Errors
    /// None: all values have a JSON form.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn reasons_against(&self) -> Vec<String> {
        let GeneratorFacts { lag, busy_share, .. } = self.generator;
        let mut reasons = Vec::new();
        if busy_share > BUSY_MAX {
            reasons.push(format!(
                "the generator was busy {:.0} % of the time, more than {:.0} %",
                busy_share * 100.0,
                BUSY_MAX * 100.0
            ));
        }
        if lag.p99_ms > LAG_MAX_MS.max(self.latency.p50_ms * LAG_SHARE_MAX) {
            reasons.push(format!(
                "the generator noticed planned publications late (p99 {:.2} ms), which is part of the latencies",
                lag.p99_ms
            ));
        }
        reasons
    }

    fn found_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Ending::Failed { reason } = &self.ending {
            faults.push(reason.clone());
        }
        for (group, counts) in self.groups() {
            let name = group.name();
            let mut add = |count: u64, what: &str| {
                if count > 0 {
                    faults.push(format!("{count} publications {what} ({name} connections)"));
                }
            };
            let has_failed = matches!(self.ending, Ending::Failed { .. });
            add(counts.lost, if has_failed { "lost, or never accepted" } else { "lost" });
            add(counts.duplicates, "received twice");
            add(counts.reordered, "received after a later one");
            add(counts.broken, "broken");
            if let Some(example) = &counts.example {
                faults.push(format!("the first broken one: {example}"));
            }
            if group == Group::Regular {
                for (code, count) in &counts.disconnects {
                    let code = if *code == 0 {
                        "without a code".to_owned()
                    } else {
                        format!("with {code}")
                    };
                    faults.push(format!("{count} connections closed by the server {code}"));
                }
            }
        }
        faults
    }
}

impl ServerFacts {
    fn new(plan: &Plan, version: Option<String>, usage: Usage) -> Self {
        let cpu = usage.server_cpu_seconds;
        let scheme = if plan.server.tls.is_some() { "wss" } else { "ws" };
        let positive = |value: f64| Some(value).filter(|value| *value > 0.0);
        Self {
            url: format!("{scheme}://{}{}", plan.server.host, plan.server.path),
            version,
            pid: plan.pid,
            cpu_seconds: cpu,
            cpu_share: cpu.zip(positive(usage.seconds)).map(|(cpu, seconds)| cpu / seconds),
            deliveries_per_cpu_second: cpu
                .and_then(positive)
                .map(|cpu| usage.deliveries as f64 / cpu),
            resident_bytes_before: usage.resident_bytes.map(|(before, _)| before),
            resident_bytes_after: usage.resident_bytes.map(|(_, after)| after),
        }
    }
}

impl Configuration {
    fn new(plan: &Plan) -> Self {
        Self {
            encoding: match plan.encoding {
                Encoding::Json => "json",
                Encoding::Protobuf => "protobuf",
            },
            compression: plan.compression,
            connections: plan.connections,
            slow: plan.slow,
            slow_bytes_per_second: plan.slow_bytes,
            stopped: plan.stopped,
            churn_per_second: plan.churn,
            channels: plan.channels,
            subscriptions: plan.subscriptions,
            popularity: plan.popularity,
            publish: match plan.publish {
                PublishMethod::Api { .. } => "api",
                PublishMethod::Batch { .. } => "batch",
                PublishMethod::Stream { .. } => "stream",
                PublishMethod::Client => "client",
            },
            pace: plan.pace,
            latest: plan.is_latest,
            payload: plan.payloads.origin().to_owned(),
            payload_bytes: plan.payloads.mean_bytes(),
            payload_bits_per_byte: plan.payloads.bits_per_byte(),
            warm_up_seconds: plan.warm_up.as_secs_f64(),
            seconds: plan.duration.as_secs_f64(),
        }
    }
}

impl From<&RunPart> for PartFigures {
    fn from(part: &RunPart) -> Self {
        Self { published: part.published, latency: Percentiles::from(&part.latency) }
    }
}

fn sum(parts: &[RunPart], of: impl Fn(&RunPart) -> &Histogram<u64>) -> Histogram<u64> {
    let mut all = histogram();
    parts.iter().for_each(|part| all.add(of(part)).expect("the same bounds"));
    all
}

/// A generator that is busier is the bottleneck: one that keeps up finds no socket ready now and then.
const BUSY_MAX: f64 = 0.98;
/// The poller's clock ticks in milliseconds.
const LAG_MAX_MS: f64 = 1.0;
const LAG_SHARE_MAX: f64 = 0.1;

#[cfg(test)]
mod tests;
