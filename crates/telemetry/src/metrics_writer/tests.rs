//! The same rows written twice: for a scrape and for the node.
//! In: rows of every kind of metric → out: the text of the scrape, the readings.
//! Uses prometheus-client's registry. Never: a server.
//! Changed here: tests of `writer.rs`; the list of metrics is tested over sockets in `tests/it`.

use prometheus_client::{collector::Collector, registry::Registry};

use super::*;

fn write(writer: &mut impl MetricsWriter) -> fmt::Result {
    writer.gauge("clients", "Help", 3)?;
    let label = |method: &str| [("method", method.to_owned())];
    writer.counters("calls", "Help", [(label("info"), 4), (label("rpc"), 0)])?;
    writer.counters("turns", "Help", [([], 5)])?;
    writer.seconds("time_seconds", "Help", [(label("info"), 0.5)])?;
    writer.histogram("wait_seconds", "Help", &[10, 20], &[(label("info"), &[1, 0, 2][..], 1.5)])
}

#[derive(Debug)]
struct Written;

impl Collector for Written {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        write(&mut ScrapeWriter(&mut encoder))
    }
}

#[test]
fn every_sample_of_a_scrape_is_a_reading_with_its_labels_in_the_name() {
    let mut readings = Readings::default();
    write(&mut readings).expect("memory");
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

#[test]
fn a_scrape_has_the_same_numbers() {
    let (mut registry, mut text) = (Registry::default(), String::new());
    registry.register_collector(Box::new(Written));
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("memory");
    for line in [
        "clients 3",
        r#"calls_total{method="info"} 4"#,
        "turns_total 5",
        r#"time_seconds_total{method="info"} 0.5"#,
        r#"wait_seconds_count{method="info"} 3"#,
        r#"wait_seconds_sum{method="info"} 1.5"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[test]
fn a_histogram_ends_with_the_bucket_of_infinity_which_has_its_count() {
    let (mut registry, mut text) = (Registry::default(), String::new());
    registry.register_collector(Box::new(Written));
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("memory");
    let buckets: Vec<_> =
        text.lines().filter(|line| line.starts_with("wait_seconds_bucket")).collect();
    // OpenMetrics 1.0, "Histogram": buckets are cumulative, and there must be one with le="+Inf", equal to the count.
    let expect = [
        r#"wait_seconds_bucket{le="0.00001",method="info"} 1"#,
        r#"wait_seconds_bucket{le="0.00002",method="info"} 1"#,
        r#"wait_seconds_bucket{le="+Inf",method="info"} 3"#,
    ];
    assert_eq!(buckets, expect, "{text}");
}
