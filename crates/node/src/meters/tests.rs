//! Summaries of numbers that a test sets.
//! In: values of one total and one level, times → out: summaries.
//! Uses: a meter that is a pair of numbers. Never: clocks, a node.
//! Changed here: tests of `meters.rs`; what other nodes hear of it is in `tests/it/cluster.rs`.

use super::*;

/// A total and a level.
#[derive(Default)]
struct Pair(Mutex<(f64, f64)>);

impl Meters for Pair {
    fn read(&self) -> Vec<Reading> {
        let (total, level) = *self.0.lock();
        let reading = |name: &str, kind, value| Reading { name: name.into(), kind, value };
        vec![
            reading("total", ReadingKind::Total, total),
            reading("level", ReadingKind::Level, level),
        ]
    }
}

const INTERVAL: Duration = Duration::from_secs(60);

/// Seconds, total and level then, and the items that are told afterwards.
type Row = (u64, (f64, f64), Option<&'static [(&'static str, f64)]>);

/// Sets the pair and ticks once for each row.
fn check(rows: &[Row]) {
    let summaries = Summaries::default();
    let pair = Arc::new(Pair::default());
    let start = Instant::now();
    summaries.read_from(Arc::clone(&pair) as _);
    for (seconds, values, expect) in rows {
        *pair.0.lock() = *values;
        summaries.tick(start + Duration::from_secs(*seconds), INTERVAL);
        let expect = expect
            .map(|items| items.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect());
        assert_eq!(summaries.last().map(|last| last.items), expect, "after {seconds} s");
    }
}

#[test]
fn totals_are_told_by_what_they_grew_and_levels_as_they_are() {
    check(&[
        (0, (100.0, 7.0), Some(&[("level", 7.0), ("total", 100.0)])),
        (59, (130.0, 8.0), Some(&[("level", 7.0), ("total", 100.0)])),
        (60, (150.0, 9.0), Some(&[("level", 9.0), ("total", 50.0)])),
        (61, (900.0, 1.0), Some(&[("level", 9.0), ("total", 50.0)])),
        (120, (151.0, 3.0), Some(&[("level", 3.0), ("total", 1.0)])),
    ]);
}

#[test]
fn what_is_zero_is_left_out() {
    let at_start: &[(&str, f64)] = &[("level", 1.0), ("total", 5.0)];
    check(&[(0, (5.0, 1.0), Some(at_start)), (60, (5.0, 0.0), Some(&[]))]);
}

#[test]
fn the_interval_is_the_one_that_passed() {
    let summaries = Summaries::default();
    let start = Instant::now();
    summaries.read_from(Arc::new(Pair::default()));
    summaries.tick(start, INTERVAL);
    assert_eq!(summaries.last().map(|last| last.interval_seconds), Some(60.0), "as configured");
    summaries.tick(start + Duration::from_millis(75_500), INTERVAL);
    assert_eq!(summaries.last().map(|last| last.interval_seconds), Some(75.5));
}

#[test]
fn without_meters_there_is_no_summary() {
    let summaries = Summaries::default();
    summaries.tick(Instant::now(), INTERVAL);
    summaries.tick(Instant::now() + INTERVAL * 2, INTERVAL);
    assert_eq!(summaries.last(), None);
}
