//! How metrics are written: the kinds of metrics, and the readings of the node.
//! In: names, help, labels and values → out: calls of a writer; readings.
//! Uses values alone; reads no counter. Never: the text of a scrape, which `scrape_writer` writes.
//! Changed here: what a writer can write. The list of metrics lives in the crate `metrics`.

/// Writes metrics.
pub trait MetricsWriter {
    /// Writes a gauge or a counter with all its samples.
    fn samples<const N: usize>(
        &mut self,
        kind: ReadingKind,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    );

    /// Each row: labels, counts per bucket (not cumulative; the last one is for values above all bounds), sum in seconds.
    fn histogram<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        bounds_us: &[u64],
        rows: &[(Labels<N>, &[u64], f64)],
    );

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.gauges(name, help, [([], value)]);
    }

    fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) {
        self.samples(ReadingKind::Level, name, help, as_floats(rows));
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help, [([], value)]);
    }

    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) {
        self.samples(ReadingKind::Total, name, help, as_floats(rows));
    }

    /// A counter of seconds; the name ends in `_seconds`.
    fn seconds<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) {
        self.samples(ReadingKind::Total, name, help, rows);
    }
}

/// One metric at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub name: String,
    pub kind: ReadingKind,
    pub value: f64,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadingKind {
    /// A counter; a summary has its increase.
    Total,
    /// A gauge; a summary has its value.
    Level,
}

/// Collects readings for `info` of the server API: one per row, with the labels appended to the name; count and sum of a
/// histogram.
#[derive(Default)]
pub struct Readings(pub Vec<Reading>);

/// Label names and values of one sample.
pub type Labels<const N: usize> = [(&'static str, String); N];

impl MetricsWriter for Readings {
    fn samples<const N: usize>(
        &mut self,
        kind: ReadingKind,
        name: &str,
        _: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) {
        for (labels, value) in rows {
            let mut name = name.to_owned();
            for (label, text) in &labels {
                name.extend([".", label, ".", text]);
            }
            self.0.push(Reading { name, kind, value });
        }
    }

    fn histogram<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        _: &[u64],
        rows: &[(Labels<N>, &[u64], f64)],
    ) {
        for (labels, counts, sum) in rows {
            let count = counts.iter().sum();
            self.counters(&format!("{name}_count"), help, [(labels.clone(), count)]);
            self.seconds(&format!("{name}_sum"), help, [(labels.clone(), *sum)]);
        }
    }
}

/// Scrapers, too, store values as floating point numbers.
fn as_floats<const N: usize>(
    rows: impl IntoIterator<Item = (Labels<N>, u64)>,
) -> impl Iterator<Item = (Labels<N>, f64)> {
    rows.into_iter().map(|(labels, value)| (labels, value as f64))
}

#[cfg(test)]
mod tests;
