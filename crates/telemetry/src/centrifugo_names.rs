//! The metrics of Centrifugo that ours can answer, under its names, so that its dashboard works.
//! In: the text of a scrape → out: the same samples with the prefix `centrifugo_` and other names.
//! Uses the table of names alone. Never: a counter, a metric of its own.
//! Changed here: which of our metrics has which name there.

use crate::text_format::TextFormat;

/// The lines of the metrics that are in the table, with their names there; without an end marker.
pub fn centrifugo_text(text: &str, format: TextFormat) -> String {
    let families = NAMES.iter().flat_map(|(ours, theirs)| {
        text.lines().filter_map(move |line| renamed(line, ours, theirs, format))
    });
    families.collect()
}

/// The name in Centrifugo's `info` of one of our readings, whose labels follow a dot; `None` for a metric that it does not have.
pub fn centrifugo_item(name: &str) -> Option<String> {
    let (metric, labels) = name.split_at(name.find('.').unwrap_or(name.len()));
    let find = |metric| NAMES.iter().find(|(ours, _)| *ours == metric).map(|(_, theirs)| *theirs);
    let part_of = |part: &'static str| Some((find(metric.strip_suffix(part)?)?, part));
    let whole = find(metric).map(|theirs| (theirs, ""));
    let (theirs, part) = whole.or_else(|| part_of("_count")).or_else(|| part_of("_sum"))?;
    // Its `info` has summaries, which are called like the histograms.
    let (theirs, part) = theirs
        .split_once("_histogram")
        .map_or((theirs, part), |(base, rest)| (base, if rest.is_empty() { part } else { rest }));
    let (subsystem, rest) = theirs.split_once('_')?;
    Some(format!("centrifugo.{subsystem}.{rest}{}{labels}", part.replace('_', ".")))
}

/// A line about our metric `ours` as one about `theirs`; `None` for a line about another metric.
fn renamed(line: &str, ours: &str, theirs: &str, format: TextFormat) -> Option<String> {
    let marks = ["# HELP ", "# TYPE ", ""];
    let of_mark = |mark| Some((mark, line.strip_prefix(mark)?.strip_prefix("fanwire_")?));
    let (mark, name) = marks.into_iter().find_map(of_mark)?;
    let rest = name.strip_prefix(ours)?;
    let (suffix, rest) = rest.split_at(rest.find([' ', '{'])?);
    let suffix = match suffix {
        "" | "_total" => "",
        "_bucket" | "_sum" | "_count" => suffix,
        _ => return None,
    };
    // OpenMetrics demands `_total` of a counter, which these names do not have.
    let is_counter = mark == "# TYPE " && rest == " counter";
    let rest = if is_counter && format == TextFormat::OpenMetrics { " unknown" } else { rest };
    Some(format!("{mark}centrifugo_{theirs}{suffix}{rest}\n"))
}

/// Our names, and those there. Labels are ours.
const NAMES: [(&str, &str); 37] = [
    ("node_num_clients", "node_num_clients"),
    ("client_connections_inflight", "client_connections_inflight"),
    ("node_num_users", "node_num_users"),
    ("node_num_channels", "node_num_channels"),
    ("node_num_subscriptions", "node_num_subscriptions"),
    ("client_subscriptions_inflight", "client_subscriptions_inflight"),
    ("cluster_nodes", "node_num_nodes"),
    ("build_info", "node_build"),
    ("node_tags_filter_dropped_publications", "node_tags_filter_dropped_publications"),
    ("node_publish_latency_seconds", "node_broadcast_duration_seconds"),
    ("node_messages_sent", "node_messages_sent_count"),
    ("node_broadcasts", "node_messages_received_count"),
    ("client_connections_accepted", "client_connections_accepted"),
    ("client_subscriptions_accepted", "client_subscriptions_accepted"),
    ("client_commands", "client_command_duration_seconds_histogram_count"),
    ("client_num_reply_errors", "client_num_reply_errors"),
    ("client_num_server_unsubscribes", "client_num_server_unsubscribes"),
    ("client_num_server_disconnects", "client_num_server_disconnects"),
    ("client_recover", "client_recover"),
    ("client_ping_pong_duration_seconds", "client_ping_pong_duration_seconds"),
    ("cluster_survey_duration_seconds", "node_survey_duration_seconds_histogram"),
    ("cluster_pub_sub_lag_seconds", "node_pub_sub_lag_seconds"),
    ("broker_publish_suppressed", "broker_publish_suppressed_count"),
    ("client_recovered_publications", "client_recovered_publications_sum"),
    ("transport_messages_sent", "transport_messages_sent"),
    ("transport_payload_bytes_sent", "transport_messages_sent_size"),
    ("transport_messages_received", "transport_messages_received"),
    ("transport_payload_bytes_received", "transport_messages_received_size"),
    ("transport_closes_sent", "transport_outgoing_close_count"),
    ("redis_connections_lost", "broker_redis_pub_sub_errors"),
    ("api_command_duration_seconds", "api_command_duration_seconds_histogram"),
    ("api_command_errors", "api_command_errors_total"),
    ("proxy_duration_seconds_histogram", "proxy_duration_seconds_histogram"),
    ("proxy_errors", "proxy_errors"),
    ("proxy_inflight_requests", "proxy_inflight_requests"),
    ("consumers_messages_processed", "consumers_messages_processed_total"),
    ("consumers_errors", "consumers_errors_total"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_of_the_table_has_a_name_in_info_there() {
        for (ours, theirs) in [
            ("node_num_clients", Some("centrifugo.node.num_clients")),
            (
                "node_messages_sent.type.publication",
                Some("centrifugo.node.messages_sent_count.type.publication"),
            ),
            (
                "client_commands.method.connect",
                Some("centrifugo.client.command_duration_seconds.count.method.connect"),
            ),
            (
                "api_command_duration_seconds_count.protocol.http.method.publish",
                Some("centrifugo.api.command_duration_seconds.count.protocol.http.method.publish"),
            ),
            (
                "client_ping_pong_duration_seconds_sum",
                Some("centrifugo.client.ping_pong_duration_seconds.sum"),
            ),
            ("recorder_bytes", None),
            ("nothing_count.a.node_num_clients", None),
            ("", None),
        ] {
            assert_eq!(centrifugo_item(ours).as_deref(), theirs, "{ours}");
        }
    }

    #[test]
    fn a_metric_of_the_table_is_written_under_its_name_there() {
        let text = r#"# HELP fanwire_node_num_clients Clients
# TYPE fanwire_node_num_clients gauge
fanwire_node_num_clients 3
fanwire_recorder_bytes 3
# TYPE fanwire_client_recover_total counter
fanwire_client_recover_total{recovered="yes"} 7
fanwire_client_recovered_publications_total 9
fanwire_api_command_duration_seconds_bucket{protocol="http",le="+Inf"} 6
fanwire_api_command_duration_seconds_sum{protocol="http"} 0.5
"#;
        let expected = r#"# HELP centrifugo_node_num_clients Clients
# TYPE centrifugo_node_num_clients gauge
centrifugo_node_num_clients 3
# TYPE centrifugo_client_recover counter
centrifugo_client_recover{recovered="yes"} 7
centrifugo_client_recovered_publications_sum 9
centrifugo_api_command_duration_seconds_histogram_bucket{protocol="http",le="+Inf"} 6
centrifugo_api_command_duration_seconds_histogram_sum{protocol="http"} 0.5
"#;
        assert_eq!(centrifugo_text(text, TextFormat::Prometheus), expected);
        let open_metrics = "# TYPE fanwire_client_recover counter\n";
        let unknown = "# TYPE centrifugo_client_recover unknown\n";
        assert_eq!(centrifugo_text(open_metrics, TextFormat::OpenMetrics), unknown);
    }

    #[test]
    fn a_name_is_written_once() {
        let mut theirs: Vec<_> = NAMES.iter().map(|(_, theirs)| theirs).collect();
        theirs.sort_unstable();
        theirs.dedup();
        assert_eq!(theirs.len(), NAMES.len());
    }
}
