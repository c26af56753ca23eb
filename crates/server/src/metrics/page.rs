//! One page of metrics being written, row by row.
//! In: names, help, labels and values → out: descriptors and samples in the encoder of prometheus-client.
//! Uses prometheus-client alone; reads no counter itself.
//! Changed here: how a kind of metric is written. Which metrics exist lives in `metrics`.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::MetricType,
};

pub(super) struct Page<'a, 'b>(pub(super) &'a mut DescriptorEncoder<'b>);

/// Label names and values of one sample.
pub(super) type Labels<const N: usize> = [(&'static str, String); N];

impl Page<'_, '_> {
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: usize) -> fmt::Result {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    pub(super) fn counters<const N: usize>(
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

    /// A counter of seconds; the name ends in `_seconds`.
    pub(super) fn seconds<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in rows {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, f64, u64>(&value, None)?;
        }
        Ok(())
    }

    /// Each row: labels, counts per bucket (not cumulated, one more than there are bounds), sum in seconds.
    pub(super) fn histogram<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        bounds_us: &[u64],
        rows: &[(Labels<N>, &[u64], f64)],
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, counts, sum) in rows {
            let bounds = bounds_us.iter().map(|us| *us as f64 / 1e6).chain([f64::MAX]);
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
