//! Tests of the statistics.
//! In: small sets of samples → out: figures one can check by hand.
//! Uses `stats` only.
//! Nothing else is tested here.

use super::*;

#[test]
fn the_median_is_the_middle() {
    assert_eq!(median([]), 0.0);
    assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
    assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
}

#[test]
fn percentiles_are_samples() {
    let samples: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(percentile(&samples, 0.5), 50.0);
    assert_eq!(percentile(&samples, 0.99), 99.0);
    assert_eq!(percentile(&samples[..1], 0.99), 1.0);
    assert_eq!(percentile(&[], 0.5), 0.0);
}

#[test]
fn the_slope_ignores_a_fixed_cost() {
    let points = [(1_000.0, 7_000.0), (5_000.0, 11_000.0), (10_000.0, 16_000.0)];
    assert!((slope(&points) - 1.0).abs() < 1e-9);
    assert_eq!(slope(&points[..1]), 0.0);
}

#[test]
fn large_numbers_are_grouped() {
    for (value, expect) in [(0.0, "0"), (999.6, "1,000"), (-1234.0, "-1,234"), (1e6, "1,000,000")] {
        assert_eq!(grouped(value), expect);
    }
}
