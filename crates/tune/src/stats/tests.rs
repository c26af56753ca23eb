//! Tests of means and percentiles.
//! In: sizes → out: figures.
//! Uses the room's functions. Never: measures.
//! A new figure is a test here.

use super::{Sizes, mean};

#[test]
fn sizes_are_described_by_nearest_ranks() {
    let sizes: Vec<u32> = (1..=100).rev().collect();
    let expect = Sizes { mean: 50.5, least: 1, median: 50, p95: 95, most: 100 };
    assert_eq!(Sizes::of(&sizes), expect);
}

#[test]
fn one_size_is_all_of_them() {
    let expect = Sizes { mean: 7.0, least: 7, median: 7, p95: 7, most: 7 };
    assert_eq!(Sizes::of(&[7]), expect);
}

#[test]
fn the_mean_of_nothing_is_zero() {
    assert_eq!(mean(&[]), 0.0);
}
