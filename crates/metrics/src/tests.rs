//! The page of a server with one shard, and the rows of the parts that count for themselves.
//! In: counters with known values → out: the samples that are written of them.
//! Uses a shard without connections. Never: sockets; those are in `fanwire` and in `tests/interop`.
//! Changed here: what holds for every metric. `scrape_writer` has the tests of the format itself.

use std::collections::HashSet;
use std::time::Duration;

use fanwire_fanout::{ContextSettings, EncodeWorker, GAPS_MAX, Policies, Realtime};
use fanwire_node::{Options, ShardId};
use fanwire_shard::{Budget, ShardSettings};
use fanwire_telemetry::CENTRIFUGO_NAMES;
use fanwire_telemetry::TextFormat::{OpenMetrics, Prometheus};

use super::*;

/// The metrics of a server in which nothing has happened yet, with both sets of names.
fn idle_server() -> ServerMetrics {
    let node = Node::new(Options::default()).expect("defaults are valid");
    let contexts = Arc::new(Contexts::new(ContextSettings {
        policies: Policies::new(&node.options().channel),
        level: 6,
        min_bytes: 128,
        gaps_max: GAPS_MAX,
        memory: Budget::new(1 << 20),
    }));
    let hub_node = node.clone();
    let hub_contexts = contexts.clone();
    let shards = Shards::start(&ShardSettings::default(), move |_| {
        let worker = EncodeWorker::default();
        Realtime::new(hub_node.clone(), ShardId(0), hub_contexts.clone(), worker)
    });
    let counters =
        RealtimeCounters { hub: Arc::default(), backlogs: Arc::new([BacklogCounters::default()]) };
    ServerMetrics::new(Sources {
        apis: vec![("http", Arc::new(Api::new(node.clone(), fanwire_api::ApiOptions::default())))],
        node,
        shards: shards.expect("a thread"),
        realtime_counters: Arc::new(Mutex::new(vec![counters])),
        contexts,
        redis: None,
        refusals: Arc::default(),
        overload: Arc::default(),
        tls: ListenersTls::default(),
        tls_handshakes: Arc::default(),
        certificates: None,
        rooms: Some(Box::new(two_rooms)),
        proxies: None,
        events: None,
        consumers: None,
        reloads: Arc::default(),
        snapshots: Some(Box::new(SnapshotReadings::default)),
        requests: Some(Arc::new(RequestCounts::new(["/api".to_owned()]))),
        has_centrifugo_names: true,
    })
}

fn two_rooms() -> RoomTotals {
    RoomTotals {
        rooms: 2,
        players: 7,
        waiting: 0,
        ticks: 30,
        overruns: 1,
        inputs: 4,
        inputs_refused: 0,
        messages: 60,
        bytes: 600,
        failed_outputs: 0,
        tick_times: ["", "race"].map(|kind| Arc::new(TickTimes::new(kind))).into(),
    }
}

/// The samples of what `write` writes.
fn samples(write: impl FnOnce(&mut ScrapeWriter)) -> Vec<String> {
    let mut writer = ScrapeWriter::new(Prometheus, false);
    write(&mut writer);
    let text = writer.finish();
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// The names and labels of a page.
fn series(page: &str) -> Vec<&str> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.rsplit_once(' ').expect("a value").0).collect()
}

#[test]
fn every_series_is_below_its_help_and_type_and_stands_there_once() {
    for format in [Prometheus, OpenMetrics] {
        let page = idle_server().text(format);
        let mut family = "";
        let mut families = HashSet::new();
        let mut series = HashSet::new();
        for line in page.lines().filter(|line| *line != "# EOF") {
            if let Some(help) = line.strip_prefix("# HELP ") {
                family = help.split_once(' ').expect("a help").0;
                assert!(families.insert(family), "{family} is described twice");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                assert_eq!(kind.split_once(' ').expect("a kind").0, family);
            } else {
                let (name, value) = line.rsplit_once(' ').expect("a value");
                assert!(name.starts_with(family), "{name} is below {family}");
                assert!(series.insert(name), "{name} stands there twice");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
}

#[test]
fn both_formats_have_the_same_series_in_the_same_order() {
    let metrics = idle_server();
    let open_metrics = metrics.text(OpenMetrics);
    assert_eq!(series(&metrics.text(Prometheus)), series(&open_metrics));
    assert_eq!(open_metrics.matches("# EOF").count(), 1);
}

#[test]
fn metrics_of_a_process_have_no_prefix_and_all_others_have_it() {
    let page = idle_server().text(Prometheus);
    for one in series(&page) {
        let prefix = ["process_", "fanwire_", "centrifugo_"].iter().find(|p| one.starts_with(**p));
        assert!(prefix.is_some(), "{one}");
    }
    assert!(page.contains("\nfanwire_process_resident_memory_max_bytes "));
}

#[test]
fn every_metric_that_centrifugo_has_is_one_of_ours() {
    let page = idle_server().text(Prometheus);
    for (ours, theirs) in CENTRIFUGO_NAMES {
        let is_described = page.contains(&format!("# TYPE centrifugo_{theirs} "));
        assert_eq!(is_described, !OF_OTHER_PARTS.contains(&ours), "{ours}");
    }
}

/// Metrics of Redis, of other nodes and of backends, which this server does not have.
const OF_OTHER_PARTS: [&str; 8] = [
    "redis_connections_lost",
    "cluster_survey_duration_seconds",
    "cluster_pub_sub_lag_seconds",
    "proxy_duration_seconds_histogram",
    "proxy_errors",
    "proxy_inflight_requests",
    "consumers_messages_processed",
    "consumers_errors",
];

#[test]
fn info_has_all_samples_of_a_scrape_but_buckets_and_sizes_of_histories() {
    let metrics = idle_server();
    let page = metrics.text(Prometheus);
    let is_reading = |name: &&str| {
        let rest = name.strip_prefix("fanwire_").unwrap_or(name);
        !name.starts_with("centrifugo_")
            && !name.contains("_bucket{")
            && !rest.starts_with("node_namespace_history_bytes")
    };
    let samples = series(&page).into_iter().filter(is_reading).count();
    let readings = metrics.meters().read();
    assert_eq!(readings.len(), samples, "{readings:?}");
    let players = readings.iter().find(|reading| reading.name == "room_players");
    assert_eq!(players.map(|reading| reading.value), Some(7.0));
}

#[test]
fn counts_of_hubs_are_summed_by_their_label() {
    let hubs: [Arc<HubCounters>; 2] = Default::default();
    for (hub, recovered) in hubs.iter().zip([3, 4]) {
        hub.recoveries.add(recovered);
        hub.failed_recoveries[0].add(1);
        hub.limited_publishes.add(5);
        hub.deliveries.add(10);
    }
    let found = samples(|writer| hubs::write(&hubs, writer));
    for expect in [
        "node_deliveries_total 20",
        r#"client_recover_total{recovered="no"} 2"#,
        r#"client_recover_total{recovered="yes"} 7"#,
        r#"client_rate_limited_total{limit="publish"} 10"#,
        r#"client_num_server_disconnects_total{code="other"} 0"#,
    ] {
        assert!(found.iter().any(|line| line == expect), "{expect} in {found:#?}");
    }
    let is_of_clients = |line: &String| line.starts_with("client_connections_inflight");
    assert!(!found.iter().any(is_of_clients), "no client is connected");
}

#[test]
fn waiting_publications_of_all_shards_are_summed_by_namespace() {
    let shards = [1, 2].map(|count| {
        let counters: [BacklogCounters; 2] = Default::default();
        let [_, chat] = &counters;
        chat.conflated.add(count);
        chat.age.observe(Duration::from_micros(50 * count));
        Arc::from(counters)
    });
    let names = ["".to_owned(), "chat".to_owned()];
    let found = samples(|writer| delivery::write(&shards, &names, writer));
    for expect in [
        r#"delivery_conflated_total{namespace=""} 0"#,
        r#"delivery_conflated_total{namespace="chat"} 3"#,
        r#"delivery_waiting_age_seconds_sum{namespace="chat"} 0.00015"#,
        r#"delivery_waiting_age_seconds_count{namespace="chat"} 2"#,
        r#"delivery_waiting_age_seconds_bucket{le="0.00005",namespace="chat"} 1"#,
        r#"delivery_waiting_age_seconds_bucket{le="0.0001",namespace="chat"} 2"#,
        r#"delivery_waiting_age_seconds_bucket{le="+Inf",namespace="chat"} 2"#,
    ] {
        assert!(found.iter().any(|line| line == expect), "{expect} in {found:#?}");
    }
}

#[test]
fn a_failed_reload_is_seen_until_the_next_one_succeeds() {
    let reloads = Reloads::default();
    assert!(samples(|writer| reloads.write(writer)).is_empty(), "there was none");
    reloads.record(false);
    let failed =
        ["config_last_reload_successful 0", "config_last_reload_success_timestamp_seconds 0"];
    assert_eq!(samples(|writer| reloads.write(writer)), failed);
    reloads.record(true);
    assert_eq!(samples(|writer| reloads.write(writer))[0], "config_last_reload_successful 1");
}

#[test]
fn a_request_has_the_path_of_its_handler() {
    let requests = RequestCounts::new(["/api".to_owned()]);
    for path in ["/api/publish", "/api", "/\"\n"] {
        requests.record(requests.handler(path), &http::Method::POST, 200);
    }
    let expect = [
        r#"http_requests_total{path="/api",method="POST",status="200"} 2"#,
        r#"http_requests_total{path="other",method="POST",status="200"} 1"#,
    ];
    assert_eq!(samples(|writer| requests.write(writer)), expect);
}
