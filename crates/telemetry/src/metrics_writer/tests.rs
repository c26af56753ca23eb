//! Rows of metrics that become readings of the node.
//! In: rows of every kind of metric → out: the readings.
//! Uses the writer alone. Never: a server.
//! Changed here: tests of readings; the text of a scrape is tested in `scrape_writer`.

use super::*;

#[test]
fn every_sample_of_a_scrape_is_a_reading_with_its_labels_in_the_name() {
    let label = |method: &str| [("method", method.to_owned())];
    let mut readings = Readings::default();
    readings.gauge("clients", "Help", 3);
    readings.counters("calls", "Help", [(label("info"), 4), (label("rpc"), 0)]);
    readings.counter("turns", "Help", 5);
    readings.seconds("time_seconds", "Help", [(label("info"), 0.5)]);
    let row = (label("info"), &[1, 0, 2][..], 1.5);
    readings.histogram("wait_seconds", "Help", &[10, 20], &[row]);
    let rows: Vec<_> = (readings.0.iter())
        .map(|reading| (reading.name.as_str(), reading.kind, reading.value))
        .collect();
    let expect = [
        ("clients", ReadingKind::Level, 3.0),
        ("calls.method.info", ReadingKind::Total, 4.0),
        ("calls.method.rpc", ReadingKind::Total, 0.0),
        ("turns", ReadingKind::Total, 5.0),
        ("time_seconds.method.info", ReadingKind::Total, 0.5),
        ("wait_seconds_count.method.info", ReadingKind::Total, 3.0),
        ("wait_seconds_sum.method.info", ReadingKind::Total, 1.5),
    ];
    assert_eq!(rows, expect);
}
