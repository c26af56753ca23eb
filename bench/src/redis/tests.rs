//! Tests of reading what redis-benchmark prints.
//! In: its output → out: a rate, or an error.
//! Uses nothing but the reader; never a Redis.
//! Changed here: expectations of `redis` without processes.

use super::*;

#[test]
fn the_rate_is_the_first_of_seven_figures() {
    let head = r#""test","rps","avg_latency_ms","min","p50","p95","p99","max""#;
    let row = r#""PUBLISH name "",""data","42735.04","0.018","0.008","0.015","0.031","0.1","3.2""#;
    assert_eq!(rate(&format!("{head}\n{row}\n")).expect("a row"), 42_735.04);
    assert!(rate(head).is_err(), "no row");
    assert!(rate("").is_err());
}
