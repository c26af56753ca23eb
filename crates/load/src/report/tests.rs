//! The report of runs with and without figures, and its verdicts.
//! In: a plan, records, counts → out: text, a page, JSON.
//! Uses facts about this machine. Never: sockets.
//! Whole runs are tested with the command, in `crates/cli/tests/it/bench.rs`.

use std::time::Duration;

use super::*;
use crate::address::ServerAddress;
use crate::payload::Payloads;

fn report(latencies_ms: &[u64], lag_ms: u64, counts: GroupCounts, busy_share: f64) -> Report {
    let socket = "127.0.0.1:8000".parse().expect("an address");
    let plan = Plan {
        server: ServerAddress {
            socket,
            host: "host<b>".to_owned(),
            path: "/ws".to_owned(),
            tls: None,
        },
        token: None,
        encoding: Encoding::Json,
        compression: false,
        connections: 1,
        slow: 0,
        slow_bytes: 0,
        stopped: 0,
        churn: 0.0,
        channels: 1,
        channel: "bench".to_owned(),
        subscriptions: 1,
        popularity: Popularity::Uniform,
        publish: PublishMethod::Client,
        pace: Pace::Open { rate: 10.0 },
        is_latest: false,
        payloads: Payloads::synthetic(10, 0.5, false).expect("a share"),
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        parts: 2,
        pid: None,
    };
    let mut recorder = Recorder::new(0, 500_000_000, 2);
    for latency in latencies_ms {
        recorder.published(1);
        recorder.due(1, 1 + lag_ms * 1_000_000);
        recorder.delivered(1, 1 + latency * 1_000_000, true);
    }
    recorder.end_second(None, None);
    let deliveries = latencies_ms.len() as u64;
    let usage = Usage { seconds: 1.0, deliveries, bytes: 100, busy_share, ..Usage::default() };
    let counts = [counts, GroupCounts::default(), GroupCounts::default()];
    Report::new(&plan, Ending::Complete, None, &recorder, counts, usage, 0)
}

#[test]
fn percentiles_are_of_all_parts_and_the_page_has_them() {
    let latencies: Vec<u64> = (1..=100).collect();
    let report = report(&latencies, 0, GroupCounts::default(), 0.1);
    assert!((49.9..50.2).contains(&report.latency.p50_ms), "{:?}", report.latency);
    assert!((98.9..99.2).contains(&report.latency.p99_ms), "{:?}", report.latency);
    assert!(report.invalid.is_empty() && !report.has_failed());
    let page = report.html();
    assert!(
        page.contains("Every publication arrived once") && page.contains("<polyline"),
        "{page}"
    );
    assert!(!page.contains("<b>/ws") && page.contains("host&lt;b&gt;/ws"), "names are escaped");
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing is loaded");
}

#[test]
fn plots_of_two_runs_are_files_with_a_line_for_each() {
    let (quick, slow) = ([1; 9], [50; 9]);
    let [quick, slow] =
        [quick, slow].map(|latencies| report(&latencies, 0, GroupCounts::default(), 0.1));
    let plots = Report::compared([("ours", &quick), ("theirs", &slow)]);
    assert_eq!(plots.each_ref().map(|(name, _)| *name), ["latency", "cpu"]);
    for (_, svg) in &plots {
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>"), "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert!(svg.contains(">ours<") && svg.contains(">theirs<"), "{svg}");
    }
    // Lower values are further down.
    let heights = plots[0].1.split("points=\"").skip(1);
    let first: Vec<f64> = heights
        .map(|points| points[..points.find(' ').expect("two points")].rsplit(',').next())
        .map(|height| height.expect("a pair").parse().expect("a number"))
        .collect();
    assert!(first[0] > first[1], "{first:?}");
}

#[test]
fn a_run_without_a_message_has_neither_a_verdict_nor_nonsense() {
    let report = report(&[], 0, GroupCounts::default(), 0.0);
    let (text, page) = (report.to_string(), report.html());
    assert!(text.contains("nothing was delivered") && !text.contains("arrived once"), "{text}");
    for text in [&text, &page, &report.json().expect("JSON")] {
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

#[test]
fn a_generator_that_was_the_bottleneck_makes_the_run_invalid() {
    assert_eq!(report(&[20; 9], 1, GroupCounts::default(), 0.5).invalid.len(), 0);
    let late = report(&[20; 9], 3, GroupCounts::default(), 0.5);
    assert!(late.invalid[0].contains("late (p99 3.0"), "{:?}", late.invalid);
    let busy = report(&[20; 9], 0, GroupCounts::default(), 0.99);
    assert!(busy.to_string().contains("INVALID: the generator was busy 99 %"));
    assert!(!busy.has_failed(), "the server did nothing wrong");
}

#[test]
fn every_fault_is_named_and_escaped() {
    let counts = GroupCounts {
        lost: 3,
        broken: 1,
        example: Some("<script>".to_owned()),
        disconnects: [(0, 2), (3008, 1)].into(),
        ..GroupCounts::default()
    };
    let report = report(&[1], 0, counts, 0.1);
    let expected = [
        "3 publications lost (regular connections)",
        "1 publications broken (regular connections)",
        "the first broken one: <script>",
        "2 connections closed by the server without a code",
        "1 connections closed by the server with 3008",
    ];
    assert_eq!(report.faults, expected);
    assert!(report.has_failed() && !report.html().contains("<script>\""));
    assert!(report.html().contains("&lt;script&gt;"));
}
