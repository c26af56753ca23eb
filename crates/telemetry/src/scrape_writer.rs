//! The text of a scrape, written once: Prometheus text 0.0.4 or OpenMetrics 1.0.
//! In: metrics → out: their text; on demand a copy of some samples with the names of Centrifugo.
//! Uses text alone; reads no counter.
//! Changed here: how a metric is written. Names there are in `centrifugo_names`, the list of metrics in the crate `metrics`.

use crate::centrifugo_names::centrifugo_name;
use crate::{Labels, MetricsWriter, ReadingKind, TextFormat};

/// Writes the text of a scrape.
pub struct ScrapeWriter {
    format: TextFormat,
    prefix: &'static str,
    text: String,
    /// Metrics with the names of Centrifugo, if they are wanted.
    copies: Option<String>,
}

/// The names of one metric.
struct Names<'a> {
    ours: &'a str,
    /// Only of a metric that Centrifugo has.
    theirs: Option<&'static str>,
}

impl ScrapeWriter {
    pub fn new(format: TextFormat, has_centrifugo_names: bool) -> Self {
        let copies = has_centrifugo_names.then(String::new);
        Self { format, prefix: "", text: String::new(), copies }
    }

    /// The names of the next metrics begin with `prefix`.
    pub fn set_prefix(&mut self, prefix: &'static str) {
        self.prefix = prefix;
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        self.text.extend(self.copies);
        if self.format == TextFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Writes help and type.
    fn describe<'a>(&mut self, kind: &str, name: &'a str, help: &str) -> Names<'a> {
        let is_open_metrics = self.format == TextFormat::OpenMetrics;
        let is_counter = kind == COUNTER;
        // Prometheus text names a counter as its samples, OpenMetrics without their suffix.
        let suffix = if is_counter && !is_open_metrics { TOTAL } else { "" };
        for (comment, text) in [("# HELP ", help), ("# TYPE ", kind)] {
            self.text.extend([comment, self.prefix, name, suffix, " ", text, "\n"]);
        }
        let theirs = centrifugo_name(name);
        if let (Some(copies), Some(theirs)) = (&mut self.copies, theirs) {
            // OpenMetrics demands `_total` of a counter, which these names do not have.
            let kind = if is_counter && is_open_metrics { "unknown" } else { kind };
            for (comment, text) in [("# HELP ", help), ("# TYPE ", kind)] {
                copies.extend([comment, CENTRIFUGO, theirs, " ", text, "\n"]);
            }
        }
        Names { ours: name, theirs }
    }

    /// Writes a sample; `labels` as they stand between the braces.
    fn sample(&mut self, names: &Names<'_>, suffix: &str, labels: &str, value: f64) {
        self.text.extend([self.prefix, names.ours, suffix]);
        let end_of_name = self.text.len();
        if !labels.is_empty() {
            self.text.extend(["{", labels, "}"]);
        }
        self.text.extend([" ", &value.to_string(), "\n"]);
        if let (Some(copies), Some(theirs)) = (&mut self.copies, names.theirs) {
            let suffix = if suffix == TOTAL { "" } else { suffix };
            copies.extend([CENTRIFUGO, theirs, suffix, &self.text[end_of_name..]]);
        }
    }
}

impl MetricsWriter for ScrapeWriter {
    fn samples<const N: usize>(
        &mut self,
        kind: ReadingKind,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) {
        let (kind, suffix) = match kind {
            ReadingKind::Total => (COUNTER, TOTAL),
            ReadingKind::Level => ("gauge", ""),
        };
        let names = self.describe(kind, name, help);
        for (labels, value) in rows {
            self.sample(&names, suffix, &text_of(&labels), value);
        }
    }

    fn histogram<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        bounds_us: &[u64],
        rows: &[(Labels<N>, &[u64], f64)],
    ) {
        let names = self.describe("histogram", name, help);
        let finite = bounds_us.iter().map(|us| canonical(*us as f64 / 1e6));
        let bounds: Vec<_> = finite.chain(["+Inf".to_owned()]).collect();
        for (labels, counts, sum) in rows {
            let labels = text_of(labels);
            let count: u64 = counts.iter().sum();
            self.sample(&names, "_sum", &labels, *sum);
            self.sample(&names, "_count", &labels, count as f64);
            let comma = if labels.is_empty() { "" } else { "," };
            let mut cumulative = 0;
            for (bound, count) in bounds.iter().zip(*counts) {
                cumulative += count;
                let labels = format!("le=\"{bound}\"{comma}{labels}");
                self.sample(&names, "_bucket", &labels, cumulative as f64);
            }
        }
    }
}

/// Labels as they stand between the braces. Both formats escape these three characters and no others.
fn text_of(labels: &[(&str, String)]) -> String {
    let label = |(name, value): &(&str, String)| {
        let value = value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        format!("{name}=\"{value}\"")
    };
    labels.iter().map(label).collect::<Vec<_>>().join(",")
}

/// A bound with a fraction, as OpenMetrics 1.0 writes it ("Considerations: Canonical Numbers").
fn canonical(bound: f64) -> String {
    if bound.fract() == 0.0 { format!("{bound:.1}") } else { bound.to_string() }
}

const CENTRIFUGO: &str = "centrifugo_";
const COUNTER: &str = "counter";
const TOTAL: &str = "_total";

#[cfg(test)]
mod tests;
