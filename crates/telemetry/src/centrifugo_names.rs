//! The metrics of Centrifugo that ours can answer, under its names, so that its dashboard works.
//! In: the same rows as every other writer gets → out: text of a scrape with the prefix `centrifugo_`.
//! Uses the table of names alone. Never: a counter of its own.
//! Changed here: which of our metrics has which name there.

use std::fmt::{self, Display, Write as _};

use crate::metrics_writer::{Labels, MetricsWriter};
use crate::text_format::TextFormat;

/// Writes the metrics that are in the table, and skips all others.
pub struct CentrifugoNames {
    text: String,
    format: TextFormat,
}

impl CentrifugoNames {
    pub fn new(format: TextFormat) -> Self {
        Self { text: String::new(), format }
    }

    /// The text; it has no end marker.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Writes one family under each of its names.
    fn family<const N: usize, V: Display>(
        &mut self,
        name: &str,
        (help, kind): (&str, &str),
        rows: impl IntoIterator<Item = (Labels<N>, V)>,
    ) -> fmt::Result {
        let mut names = names(name).peekable();
        if names.peek().is_none() {
            return Ok(());
        }
        let rows: Vec<_> = rows.into_iter().collect();
        for name in names {
            self.head(name, help, kind)?;
            for (labels, value) in &rows {
                self.sample(name, "", labels, None, value)?;
            }
        }
        Ok(())
    }

    /// OpenMetrics demands `_total` of a counter, which these names do not have.
    fn head(&mut self, name: &str, help: &str, kind: &str) -> fmt::Result {
        let is_counter_there = kind == "counter" && self.format == TextFormat::OpenMetrics;
        let kind = if is_counter_there { "unknown" } else { kind };
        writeln!(self.text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}")
    }

    fn sample(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &[(&'static str, String)],
        bound: Option<&str>,
        value: impl Display,
    ) -> fmt::Result {
        write!(self.text, "{PREFIX}{name}{suffix}")?;
        let mut separator = "{";
        let bound = bound.map(|bound| ("le", bound));
        let labels = labels.iter().map(|(name, value)| (*name, value.as_str())).chain(bound);
        for (label, value) in labels {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.text, "{separator}{label}=\"{value}\"")?;
            separator = ",";
        }
        writeln!(self.text, "{} {value}", if separator == "," { "}" } else { "" })
    }
}

impl MetricsWriter for CentrifugoNames {
    fn gauge(&mut self, name: &str, help: &str, value: usize) -> fmt::Result {
        self.family(name, (help, "gauge"), [([], value)])
    }

    fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result {
        self.family(name, (help, "gauge"), rows)
    }

    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result {
        self.family(name, (help, "counter"), rows)
    }

    fn seconds<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> fmt::Result {
        self.family(name, (help, "counter"), rows)
    }

    fn histogram<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        bounds_us: &[u64],
        rows: &[(Labels<N>, &[u64], f64)],
    ) -> fmt::Result {
        for name in names(name) {
            self.head(name, help, "histogram")?;
            for (labels, counts, sum) in rows {
                let bounds = bounds_us.iter().map(|us| (*us as f64 / 1e6).to_string());
                let mut total = 0;
                for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(counts.iter()) {
                    total += count;
                    self.sample(name, "_bucket", labels, Some(&bound), total)?;
                }
                self.sample(name, "_sum", labels, None, sum)?;
                self.sample(name, "_count", labels, None, total)?;
            }
        }
        Ok(())
    }
}

/// The names that a metric of ours has there.
fn names(name: &str) -> impl Iterator<Item = &'static str> {
    NAMES.iter().filter(move |(ours, _)| *ours == name).map(|(_, theirs)| *theirs)
}

const PREFIX: &str = "centrifugo_";

/// Our names, and those there. Labels are the same, as far as ours has them.
const NAMES: [(&str, &str); 32] = [
    ("node_num_clients", "node_num_clients"),
    ("node_num_clients", "client_connections_inflight"),
    ("node_num_users", "node_num_users"),
    ("node_num_channels", "node_num_channels"),
    ("node_num_subscriptions", "node_num_subscriptions"),
    ("node_num_subscriptions", "client_subscriptions_inflight"),
    ("cluster_nodes", "node_num_nodes"),
    ("build_info", "node_build"),
    ("node_tags_filter_dropped_publications", "node_tags_filter_dropped_publications"),
    ("node_publish_latency_seconds", "node_broadcast_duration_seconds"),
    ("node_broadcasts", "node_messages_received_count"),
    ("client_connections_accepted", "client_connections_accepted"),
    ("client_subscriptions_accepted", "client_subscriptions_accepted"),
    ("client_commands", "client_command_duration_seconds_histogram_count"),
    ("client_num_reply_errors", "client_num_reply_errors"),
    ("client_num_server_unsubscribes", "client_num_server_unsubscribes"),
    ("client_num_server_disconnects", "client_num_server_disconnects"),
    ("client_recover", "client_recover"),
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
    fn a_metric_of_the_table_is_written_under_each_of_its_names() {
        let mut names = CentrifugoNames::new(TextFormat::Prometheus);
        names.gauge("node_num_clients", "Clients", 3).expect("memory");
        names.gauge("recorder_bytes", "Not there", 3).expect("memory");
        let rows = [([("code", "10\"9\\".to_owned())], 7)];
        names.counters("client_num_reply_errors", "Errors", rows).expect("memory");
        let labels = [("protocol", "http".to_owned()), ("method", "publish".to_owned())];
        let rows = [(labels, &[1_u64, 2, 3][..], 0.5)];
        names
            .histogram("api_command_duration_seconds", "Time", &[10, 1000], &rows)
            .expect("memory");
        let expected = r#"# HELP centrifugo_node_num_clients Clients
# TYPE centrifugo_node_num_clients gauge
centrifugo_node_num_clients 3
# HELP centrifugo_client_connections_inflight Clients
# TYPE centrifugo_client_connections_inflight gauge
centrifugo_client_connections_inflight 3
# HELP centrifugo_client_num_reply_errors Errors
# TYPE centrifugo_client_num_reply_errors counter
centrifugo_client_num_reply_errors{code="10\"9\\"} 7
# HELP centrifugo_api_command_duration_seconds_histogram Time
# TYPE centrifugo_api_command_duration_seconds_histogram histogram
centrifugo_api_command_duration_seconds_histogram_bucket{protocol="http",method="publish",le="0.00001"} 1
centrifugo_api_command_duration_seconds_histogram_bucket{protocol="http",method="publish",le="0.001"} 3
centrifugo_api_command_duration_seconds_histogram_bucket{protocol="http",method="publish",le="+Inf"} 6
centrifugo_api_command_duration_seconds_histogram_sum{protocol="http",method="publish"} 0.5
centrifugo_api_command_duration_seconds_histogram_count{protocol="http",method="publish"} 6
"#;
        assert_eq!(names.into_text(), expected);
    }

    #[test]
    fn a_name_is_written_once() {
        let mut theirs: Vec<_> = NAMES.iter().map(|(_, theirs)| theirs).collect();
        theirs.sort_unstable();
        theirs.dedup();
        assert_eq!(theirs.len(), NAMES.len());
    }
}
