//! The metrics of Centrifugo that ours can answer, under its names, so that its dashboard works.
//! In: the name of one of our metrics, or of a reading of `info` → out: its name there.
//! Uses the table of names alone. Never: a counter, a metric of its own.
//! Changed here: which of our metrics has which name there.

/// The name that Centrifugo has for our metric `ours`; both without prefix.
pub(crate) fn centrifugo_name(ours: &str) -> Option<&'static str> {
    let row = CENTRIFUGO_NAMES.iter().find(|(name, _)| *name == ours)?;
    Some(row.1)
}

/// The name in Centrifugo's `info` of one of our readings, whose labels follow a dot; `None` for a metric that it does not have.
pub fn centrifugo_item(name: &str) -> Option<String> {
    let (metric, labels) = name.split_at(name.find('.').unwrap_or(name.len()));
    let part_of = |part: &'static str| Some((centrifugo_name(metric.strip_suffix(part)?)?, part));
    let whole = centrifugo_name(metric).map(|theirs| (theirs, ""));
    let (theirs, part) = whole.or_else(|| part_of("_count")).or_else(|| part_of("_sum"))?;
    // Its `info` has summaries, which are called like the histograms.
    let (theirs, part) = theirs
        .split_once("_histogram")
        .map_or((theirs, part), |(base, rest)| (base, if rest.is_empty() { part } else { rest }));
    let (subsystem, rest) = theirs.split_once('_')?;
    Some(format!("centrifugo.{subsystem}.{rest}{}{labels}", part.replace('_', ".")))
}

/// Our names, and those there. Labels are ours.
pub const CENTRIFUGO_NAMES: [(&str, &str); 37] = [
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
    use std::collections::HashSet;

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
    fn a_name_is_there_once() {
        let ours: HashSet<_> = CENTRIFUGO_NAMES.iter().map(|(ours, _)| ours).collect();
        let theirs: HashSet<_> = CENTRIFUGO_NAMES.iter().map(|(_, theirs)| theirs).collect();
        assert_eq!([ours.len(), theirs.len()], [CENTRIFUGO_NAMES.len(); 2]);
    }
}
