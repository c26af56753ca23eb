//! The little statistics a measurement needs.
//! In: samples → out: median, percentile, slope; numbers as people read them.
//! Pure.
//! Changed here: how numbers are summed up; which ones are shown is the scenario's business.

pub use fanwire_load::grouped;
use std::cmp::Ordering;

/// The middle sample, or the mean of the two in the middle; 0 without samples.
pub fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = samples.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => sorted[length / 2],
        length => (sorted[length / 2 - 1] + sorted[length / 2]) / 2.0,
    }
}

/// The smallest sample that at least this share (0 to 1) of all samples does not exceed; 0 without samples.
pub fn percentile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The least-squares slope of y over x; 0 for fewer than two different x.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

/// Whether the figure of a scenario is on the right side of its bar, and the end of its last line; "" without a bar.
pub fn judge(value: f64, right_side: Ordering, bar: Option<f64>) -> (bool, String) {
    let Some(bar) = bar else { return (true, String::new()) };
    let passed = value == bar || value.partial_cmp(&bar) == Some(right_side);
    (passed, format!(", bar {bar}: {}", if passed { "met" } else { "MISSED" }))
}

/// Whether a value of a row is kept within its limit, and what stands behind it; "" without a limit.
pub fn limit(value: f64, max: Option<f64>) -> (bool, String) {
    let Some(max) = max else { return (true, String::new()) };
    let kept = value <= max;
    (kept, format!(" (at most {max}: {})", if kept { "kept" } else { "EXCEEDED" }))
}

#[cfg(test)]
mod tests;
