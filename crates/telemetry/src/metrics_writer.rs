//! The writers of metrics: text for a scrape, readings for the node.
//! In: names, help, labels and values → out: samples in the encoder of prometheus-client, or readings for the node.
//! Uses prometheus-client; reads no counter itself.
//! Changed here: how a kind of metric is written. The list of metrics lives in the server's `metrics`.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

/// Writes metrics.
pub trait MetricsWriter {
    fn gauge(&mut self, name: &str, help: &str, value: usize) -> fmt::Result;

    fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result;

    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result;

    /// A counter of seconds; the name ends in `_seconds`.
    fn seconds<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> fmt::Result;

    /// Each row: labels, counts per bucket (not cumulative; the last one is for values above all bounds), sum in seconds.
    fn histogram<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        bounds_us: &[u64],
        rows: &[(Labels<N>, &[u64], f64)],
    ) -> fmt::Result;
}

/// Writes the text of a scrape.
pub struct ScrapeWriter<'a, 'b>(pub &'a mut DescriptorEncoder<'b>);

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

impl MetricsWriter for ScrapeWriter<'_, '_> {
    fn gauge(&mut self, name: &str, help: &str, value: usize) -> fmt::Result {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in rows {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in rows {
            match N {
                0 => metric.encode_counter::<NoLabelSet, u64, u64>(&value, None)?,
                _ => metric
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, u64, u64>(&value, None)?,
            }
        }
        Ok(())
    }

    fn seconds<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in rows {
            match N {
                0 => metric.encode_counter::<NoLabelSet, f64, u64>(&value, None)?,
                _ => metric
                    .encode_family(&labels)?
                    .encode_counter::<NoLabelSet, f64, u64>(&value, None)?,
            }
        }
        Ok(())
    }

    fn histogram<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        bounds_us: &[u64],
        rows: &[(Labels<N>, &[u64], f64)],
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, counts, sum) in rows {
            let bounds = bounds_us.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(counts.iter().copied()).collect();
            let total = counts.iter().sum();
            match N {
                0 => metric.encode_histogram::<NoLabelSet>(*sum, total, &buckets, None)?,
                _ => metric
                    .encode_family(labels)?
                    .encode_histogram::<NoLabelSet>(*sum, total, &buckets, None)?,
            }
        }
        Ok(())
    }
}

impl MetricsWriter for Readings {
    fn gauge(&mut self, name: &str, _: &str, value: usize) -> fmt::Result {
        self.add(name, &[], ReadingKind::Level, value as f64);
        Ok(())
    }

    fn gauges<const N: usize>(
        &mut self,
        name: &str,
        _: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result {
        for (labels, value) in rows {
            self.add(name, &labels, ReadingKind::Level, value as f64);
        }
        Ok(())
    }

    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result {
        self.seconds(name, help, rows.into_iter().map(|(labels, value)| (labels, value as f64)))
    }

    fn seconds<const N: usize>(
        &mut self,
        name: &str,
        _: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> fmt::Result {
        for (labels, value) in rows {
            self.add(name, &labels, ReadingKind::Total, value);
        }
        Ok(())
    }

    fn histogram<const N: usize>(
        &mut self,
        name: &str,
        _: &str,
        _: &[u64],
        rows: &[(Labels<N>, &[u64], f64)],
    ) -> fmt::Result {
        for (labels, counts, sum) in rows {
            let count: u64 = counts.iter().sum();
            self.add(&format!("{name}_count"), labels, ReadingKind::Total, count as f64);
            self.add(&format!("{name}_sum"), labels, ReadingKind::Total, *sum);
        }
        Ok(())
    }
}

impl Readings {
    fn add(&mut self, name: &str, labels: &[(&str, String)], kind: ReadingKind, value: f64) {
        let mut name = name.to_owned();
        for (label, text) in labels {
            name.extend([".", label, ".", text]);
        }
        self.0.push(Reading { name, kind, value });
    }
}

#[cfg(test)]
mod tests;
