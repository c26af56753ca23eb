//! Means and percentiles of message sizes.
//! In: sizes in bytes → out: figures.
//! Uses nothing. Never: formats a figure.
//! Changed here: which figures describe a set of sizes.

/// Distribution of a set of sizes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    pub(crate) mean: f64,
    pub(crate) least: u32,
    pub(crate) median: u32,
    pub(crate) p95: u32,
    pub(crate) most: u32,
}

impl Sizes {
    /// `sizes` holds one or more.
    pub(crate) fn of(sizes: &[u32]) -> Self {
        let mut sorted = sizes.to_vec();
        sorted.sort_unstable();
        Self {
            mean: mean(sizes),
            least: percentile(&sorted, 0),
            median: percentile(&sorted, 50),
            p95: percentile(&sorted, 95),
            most: percentile(&sorted, 100),
        }
    }
}

/// 0 for none.
pub(crate) fn mean(sizes: &[u32]) -> f64 {
    let sum: f64 = sizes.iter().map(|size| f64::from(*size)).sum();
    sum / sizes.len().max(1) as f64
}

/// The smallest size that `percent` of all do not exceed (nearest rank).
fn percentile(sorted: &[u32], percent: usize) -> u32 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

#[cfg(test)]
mod tests;
