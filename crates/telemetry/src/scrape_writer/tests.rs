//! The text of a scrape, byte by byte, in both formats and with both sets of names.
//! In: a metric of every kind → out: the whole text.
//! Uses the writer alone. Never: a server.
//! Changed here: expected texts. `tests/interop/python/test_metrics.py` has parsers of others read them.

use super::TextFormat::{OpenMetrics, Prometheus};
use super::*;

/// The text of metrics with the prefix `fanwire_`.
fn text(format: TextFormat, write: impl Fn(&mut ScrapeWriter)) -> String {
    let mut writer = ScrapeWriter::new(format, false);
    writer.set_prefix("fanwire_");
    write(&mut writer);
    writer.finish()
}

fn one_of_each_kind(writer: &mut ScrapeWriter) {
    let label = |method: &str| [("method", method.to_owned())];
    writer.gauge("clients", "Connected", 3);
    writer.gauges("inflight", "Calls", [(label("info"), 1), (label("rpc"), 0)]);
    writer.counter("turns", "Turns", u64::from(u32::MAX));
    writer.seconds("time_seconds", "Time", [(label("info"), 0.25)]);
    let row = (label("info"), &[1, 0, 2][..], 1.5);
    writer.histogram("wait_seconds", "Wait", &[10, 1_000_000], &[row]);
}

#[test]
fn prometheus_text_names_a_counter_as_its_samples() {
    let expect = r#"# HELP fanwire_clients Connected
# TYPE fanwire_clients gauge
fanwire_clients 3
# HELP fanwire_inflight Calls
# TYPE fanwire_inflight gauge
fanwire_inflight{method="info"} 1
fanwire_inflight{method="rpc"} 0
# HELP fanwire_turns_total Turns
# TYPE fanwire_turns_total counter
fanwire_turns_total 4294967295
# HELP fanwire_time_seconds_total Time
# TYPE fanwire_time_seconds_total counter
fanwire_time_seconds_total{method="info"} 0.25
# HELP fanwire_wait_seconds Wait
# TYPE fanwire_wait_seconds histogram
fanwire_wait_seconds_sum{method="info"} 1.5
fanwire_wait_seconds_count{method="info"} 3
fanwire_wait_seconds_bucket{le="0.00001",method="info"} 1
fanwire_wait_seconds_bucket{le="1.0",method="info"} 1
fanwire_wait_seconds_bucket{le="+Inf",method="info"} 3
"#;
    assert_eq!(text(Prometheus, one_of_each_kind), expect);
}

#[test]
fn openmetrics_names_a_counter_without_total_and_has_an_end() {
    let prometheus = text(Prometheus, one_of_each_kind);
    let comments = |line: &str| match line.starts_with('#') {
        true => line.replace("_total", ""),
        false => line.to_owned(),
    };
    let expect: Vec<_> = prometheus.lines().map(comments).chain(["# EOF".to_owned()]).collect();
    let found = text(OpenMetrics, one_of_each_kind);
    assert_eq!(found.lines().collect::<Vec<_>>(), expect);
    assert!(found.ends_with("\n# EOF\n"));
}

#[test]
fn a_histogram_without_labels_has_the_bound_alone() {
    let found = text(Prometheus, |writer| {
        writer.histogram("wait_seconds", "Wait", &[50], &[([], &[0, 0], 0.0)]);
    });
    let samples: Vec<_> = found.lines().skip(2).collect();
    let expect = [
        "fanwire_wait_seconds_sum 0",
        "fanwire_wait_seconds_count 0",
        r#"fanwire_wait_seconds_bucket{le="0.00005"} 0"#,
        r#"fanwire_wait_seconds_bucket{le="+Inf"} 0"#,
    ];
    assert_eq!(samples, expect);
}

#[test]
fn a_metric_without_samples_is_described() {
    for format in [Prometheus, OpenMetrics] {
        let found = text(format, |writer| writer.gauges::<1>("revocations", "Blocked", []));
        let expect = "# HELP fanwire_revocations Blocked\n# TYPE fanwire_revocations gauge\n";
        assert_eq!(found.trim_end_matches("# EOF\n"), expect);
    }
}

#[test]
fn backslashes_quotes_and_line_feeds_of_a_label_are_escaped_and_nothing_else() {
    for (value, expect) in [
        ("", ""),
        ("a,b}=", "a,b}="),
        (r"C:\n", r"C:\\n"),
        (r#"\""#, r#"\\\""#),
        ("two\nlines\r\n", "two\\nlines\r\\n"),
        ("\u{feff}ü\0\t\u{2028}", "\u{feff}ü\0\t\u{2028}"),
    ] {
        let found = text(Prometheus, |writer| {
            writer.gauges("keys", "Keys", [([("key", value.to_owned())], 1)]);
        });
        assert!(found.ends_with(&format!("fanwire_keys{{key=\"{expect}\"}} 1\n")), "{found}");
    }
}

#[test]
fn metrics_that_centrifugo_has_follow_under_its_names() {
    let written = |format| {
        let mut writer = ScrapeWriter::new(format, true);
        writer.gauge("process_open_fds", "Files", 7);
        writer.set_prefix("fanwire_");
        writer.gauge("cluster_nodes", "Nodes", 1);
        writer.gauge("recorder_bytes", "Bytes", 2);
        writer.counters("client_recover", "Recoveries", [([("recovered", "yes".to_owned())], 7)]);
        writer.histogram("cluster_pub_sub_lag_seconds", "Lag", &[50], &[([], &[3, 1], 0.5)]);
        writer.finish()
    };
    let expect = r#"# HELP centrifugo_node_num_nodes Nodes
# TYPE centrifugo_node_num_nodes gauge
centrifugo_node_num_nodes 1
# HELP centrifugo_client_recover Recoveries
# TYPE centrifugo_client_recover counter
centrifugo_client_recover{recovered="yes"} 7
# HELP centrifugo_node_pub_sub_lag_seconds Lag
# TYPE centrifugo_node_pub_sub_lag_seconds histogram
centrifugo_node_pub_sub_lag_seconds_sum 0.5
centrifugo_node_pub_sub_lag_seconds_count 4
centrifugo_node_pub_sub_lag_seconds_bucket{le="0.00005"} 3
centrifugo_node_pub_sub_lag_seconds_bucket{le="+Inf"} 4
"#;
    assert_eq!(copies(&written(Prometheus)), expect);
    // OpenMetrics demands a suffix of counters, which Centrifugo's names do not have.
    let unknown = expect.replace("client_recover counter", "client_recover unknown");
    assert_eq!(copies(&written(OpenMetrics)), unknown + "# EOF\n");
}

/// The text from the first metric of Centrifugo on.
fn copies(text: &str) -> &str {
    let start = text.find("# HELP centrifugo_").expect("a metric of Centrifugo");
    &text[start..]
}
