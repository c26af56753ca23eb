//! The metrics of a running server for Prometheus, and for `info` of the server API.
//! In: counters of shards, hubs, node and API → out: one text per scrape, readings; only requests and reloads are counted here.
//! Uses prometheus-client through `telemetry`; reads relaxed, so a scrape never slows a shard.
//! Changed here: names, labels and help of metrics. The counters live in the code that increments them.
#![forbid(unsafe_code)]

mod certificates;
mod compression;
mod consumers;
mod delivery;
mod engine;
mod events;
mod proxies;
mod reloads;
mod requests;
mod rooms;
mod shard;
mod tls;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

use fanwire_api::{Api, KeyHolder, LATENCY_BOUNDS_US, Method, MethodCounts};
use fanwire_node::{HubCounters, Meters, Node, Unrecovered};
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector, encoding::DescriptorEncoder, encoding::text, registry::Registry,
};

pub use self::reloads::Reloads;
pub use self::requests::{HandlerId, RequestCounts};
pub use self::rooms::RoomTotals;
use self::shard::HistogramSum;
use fanwire_brokers::redis::Redis;
use fanwire_consumers::ConsumerMonitor;
use fanwire_edge::Refusals;
use fanwire_events::Events;
use fanwire_fanout::{BacklogCounters, Contexts, RealtimeCounters, Shards};
use fanwire_profile::process::{self, ProcessMetrics};
use fanwire_proxy::EventProxies;
use fanwire_shard::{Transport, counters::Traffic};
use fanwire_telemetry::{
    Labels, MetricsWriter, Reading, Readings, ScrapeWriter, TextFormat, centrifugo_text,
    prometheus_text,
};
use fanwire_tls::{Certificates, HandshakeCounts, ListenersTls};

/// The sources of all metrics and the registry that encodes them.
pub struct ServerMetrics {
    sources: Arc<Sources>,
    registry: Registry,
    process: Registry,
}

/// Bytes sent since the start, over all shards and encodings.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sent {
    pub payload_bytes: u64,
    pub wire_bytes: u64,
}

/// The parts of a server with counters.
pub struct Sources {
    pub node: Arc<Node>,
    pub shards: Arc<Shards>,
    /// Each shard adds its own when it starts.
    pub realtime_counters: Arc<Mutex<Vec<RealtimeCounters>>>,
    pub contexts: Arc<Contexts>,
    /// The server API by its protocols.
    pub apis: Vec<(&'static str, Arc<Api>)>,
    /// The engine, unless it is memory.
    pub redis: Option<Arc<Redis>>,
    pub refusals: Arc<Refusals>,
    pub tls: ListenersTls,
    pub tls_handshakes: Arc<HandshakeCounts>,
    /// Those that an authority issues.
    pub certificates: Option<Arc<Certificates>>,
    pub rooms: Option<Box<dyn Fn() -> RoomTotals + Send + Sync>>,
    pub proxies: Option<EventProxies>,
    pub events: Option<Events>,
    pub consumers: Option<ConsumerMonitor>,
    pub reloads: Arc<Reloads>,
    /// Only if they are counted.
    pub requests: Option<Arc<RequestCounts>>,
    /// Metrics have the names of Centrifugo, too.
    pub has_centrifugo_names: bool,
}

impl Sources {
    /// Of each shard.
    fn hubs(&self) -> Vec<Arc<HubCounters>> {
        self.realtime_counters.lock().iter().map(|counters| counters.hub.clone()).collect()
    }

    /// Of each shard, by namespace.
    fn backlogs(&self) -> Vec<Arc<[BacklogCounters]>> {
        self.realtime_counters.lock().iter().map(|counters| counters.backlogs.clone()).collect()
    }
}

impl ServerMetrics {
    pub fn new(sources: Sources) -> Self {
        let sources = Arc::new(sources);
        let mut registry = Registry::with_prefix("fanwire");
        registry.register_collector(Box::new(Scrape(sources.clone())));
        let mut process = Registry::default();
        process.register_collector(Box::new(ProcessMetrics));
        Self { sources, registry, process }
    }

    /// The counts of HTTP requests, if they are counted.
    pub fn requests(&self) -> Option<Arc<RequestCounts>> {
        self.sources.requests.clone()
    }

    /// The same metrics for `info` of the server API.
    pub fn meters(&self) -> Arc<dyn Meters> {
        Arc::new(NodeMeters(Arc::downgrade(&self.sources)))
    }

    /// The text of one scrape.
    pub fn text(&self, format: TextFormat) -> String {
        let mut text = String::new();
        text::encode_registry(&mut text, &self.process)
            .and_then(|()| text::encode(&mut text, &self.registry))
            .expect("writing to a String does not fail");
        if format == TextFormat::Prometheus {
            text = prometheus_text(&text);
        }
        if self.sources.has_centrifugo_names {
            let names = centrifugo_text(&text, format);
            let end = text.strip_suffix(END).map_or(text.len(), str::len);
            text.insert_str(end, &names);
        }
        text
    }

    pub fn sent(&self) -> Sent {
        let mut sent = Sent::default();
        for traffic in self.sources.shards.counters().iter().flat_map(|counters| &counters.traffic)
        {
            sent.payload_bytes += traffic.payload_bytes_out.value();
            sent.wire_bytes += traffic.wire_bytes_out.value();
        }
        sent
    }

    /// Publications handed to subscribers since the start.
    pub fn deliveries(&self) -> u64 {
        self.sources.hubs().iter().map(|hub| hub.deliveries.value()).sum()
    }

    pub fn connections(&self) -> usize {
        self.sources.shards.connections()
    }
}

struct Scrape(Arc<Sources>);

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrape")
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut writer = ScrapeWriter(&mut encoder);
        self.write(&mut writer)?;
        self.histories(&mut writer)
    }
}

/// Weak, because the node stores it and the sources contain the node.
struct NodeMeters(Weak<Sources>);

impl Meters for NodeMeters {
    fn read(&self) -> Vec<Reading> {
        let mut readings = Readings::default();
        if let Some(sources) = self.0.upgrade() {
            let written = Scrape(sources).write(&mut readings);
            written.and_then(|()| process::standard(&mut readings)).expect("memory does not fail");
        }
        readings.0
    }
}

impl Scrape {
    /// For scrapes alone: it reads the size of each history, which the readings of `info` must not cost a node by itself.
    fn histories(&self, writer: &mut impl MetricsWriter) -> fmt::Result {
        let bytes = self.0.node.diagnostics().history_by_namespace().into_iter();
        let bytes = bytes.map(|(namespace, bytes)| ([("namespace", namespace)], bytes));
        let help = "Approximate memory of the histories of a namespace in bytes";
        writer.gauges("node_namespace_history_bytes", help, bytes)
    }

    fn write(&self, writer: &mut impl MetricsWriter) -> fmt::Result {
        self.node(writer)?;
        self.traffic(writer)?;
        shard::write(&self.0.shards, writer)?;
        process::write(writer)?;
        self.0.reloads.write(writer)?;
        if let Some(requests) = &self.0.requests {
            requests.write(writer)?;
        }
        tls::write(&self.0.tls, &self.0.tls_handshakes, writer)?;
        self.hubs(writer)?;
        self.hubs_by_label(writer)?;
        let names = self.0.node.namespace_names();
        compression::write(&self.0.contexts, &names, writer)?;
        delivery::write(&self.0.backlogs(), &names, writer)?;
        engine::write(self.0.redis.as_deref(), &self.0.node, writer)?;
        if let Some(certificates) = &self.0.certificates {
            certificates::write(certificates, writer)?;
        }
        if let Some(rooms) = &self.0.rooms {
            rooms::write(&rooms(), writer)?;
        }
        if let Some(proxies) = &self.0.proxies {
            proxies::write(proxies, writer)?;
        }
        if let Some(events) = &self.0.events {
            events::write(events, writer)?;
        }
        if let Some(tracer) = fanwire_telemetry::tracer() {
            let help = "Spans of traces that were dropped: the collector does not take them";
            writer.counters("opentelemetry_spans_dropped", help, [([], tracer.dropped())])?;
        }
        if let Some(consumers) = &self.0.consumers {
            consumers::write(consumers, writer)?;
        }
        self.api(writer)
    }

    fn node(&self, writer: &mut impl MetricsWriter) -> fmt::Result {
        let counts = self.0.node.counts();
        let gauges = [
            ("node_num_clients", "Clients whose connect succeeded", counts.connections),
            ("node_num_users", "Distinct users of connected clients", counts.users),
            ("node_num_channels", "Channels with at least one subscriber", counts.channels),
            ("node_num_subscriptions", "Subscriptions of all clients", counts.subscriptions),
            (
                "node_history_bytes",
                "Approximate memory of histories in bytes",
                counts.history_bytes,
            ),
            (
                "transport_connections",
                "Open connections, in any state",
                self.0.shards.connections(),
            ),
        ];
        for (name, help, value) in gauges {
            writer.gauge(name, help, value)?;
        }
        let namespaces = self.0.node.channels().subscriptions_by_namespace().into_iter();
        let namespaces = namespaces.filter(|(_, count)| *count > 0);
        let rows = namespaces.map(|(name, count)| ([("namespace", name)], count as u64));
        let help = "Subscriptions by the namespace of their channel";
        writer.gauges("client_subscriptions_inflight", help, rows)?;
        let evictions = self.0.node.channels().history_evictions();
        let help = "Histories that were dropped, because channel.history_memory_max is reached";
        writer.counters("node_history_evictions", help, [([], evictions)])?;
        let refused = self.0.refusals.counts();
        let refused = refused.map(|(cause, count)| ([("cause", cause.name().to_owned())], count));
        writer.counters("transport_handshakes_refused", "Handshakes refused, by cause", refused)?;
        let keys = self.0.node.key_counters();
        let help = "Requests for JWKS documents";
        writer.counters("token_key_fetches", help, [([], keys.fetches)])?;
        let help = "Requests for JWKS documents that failed or returned no valid key set";
        writer.counters("token_key_fetch_failures", help, [([], keys.failures)])
    }

    fn traffic(&self, writer: &mut impl MetricsWriter) -> fmt::Result {
        type Read = fn(&Traffic) -> u64;
        let rows: [(&str, &str, Read); 6] = [
            ("transport_messages_received", "Messages received", |t| t.messages_in.value()),
            (
                "transport_payload_bytes_received",
                "Bytes of messages received, after inflating",
                |t| t.payload_bytes_in.value(),
            ),
            ("transport_wire_bytes_received", "Bytes received on sockets", |t| {
                t.wire_bytes_in.value()
            }),
            ("transport_messages_sent", "Messages sent", |t| t.messages_out.value()),
            (
                "transport_payload_bytes_sent",
                "Bytes of messages sent, before compression and framing",
                |t| t.payload_bytes_out.value(),
            ),
            ("transport_wire_bytes_sent", "Bytes sent on sockets", |t| t.wire_bytes_out.value()),
        ];
        for (name, help, read) in rows {
            let rows = Transport::ALL.into_iter().flat_map(|transport| {
                [("json", false), ("protobuf", true)].map(|(encoding, is_binary)| {
                    let transport_name = ("transport", transport.name().to_owned());
                    let labels = [transport_name, ("encoding", encoding.to_owned())];
                    let shards = self.0.shards.counters().iter();
                    let sum = shards.map(|counters| read(counters.of(transport, is_binary))).sum();
                    (labels, sum)
                })
            });
            writer.counters(name, help, rows)?;
        }
        Ok(())
    }

    fn hubs(&self, writer: &mut impl MetricsWriter) -> fmt::Result {
        type Read = fn(&HubCounters) -> u64;
        let rows: [(&str, &str, Read); 11] = [
            ("client_connections_accepted", "Connects that succeeded", |c| {
                c.connections_accepted.value()
            }),
            ("client_subscriptions_accepted", "Subscriptions that succeeded", |c| {
                c.subscriptions_accepted.value()
            }),
            ("client_num_server_unsubscribes", "Subscriptions ended by the server", |c| {
                c.server_unsubscribes.value()
            }),
            ("client_recovered_publications", "Publications sent in subscribe results", |c| {
                c.recovered_publications.value()
            }),
            (
                "client_lost_positions",
                "Subscriptions ended because a publication was missed",
                |c| c.lost_positions.value(),
            ),
            ("client_pings_sent", "Pings sent", |c| c.pings.value()),
            ("node_broadcasts", "Publications delivered, per shard", |c| c.broadcasts.value()),
            ("node_deliveries", "Publications delivered to subscribers", |c| c.deliveries.value()),
            ("client_deltas", "Publications sent as deltas", |c| c.deltas.value()),
            (
                "client_delta_saved_bytes",
                "Bytes of data that deltas saved, before any compression",
                |c| c.delta_saved_bytes.value(),
            ),
            (
                "node_tags_filter_dropped_publications",
                "Publications that filters of subscribers dropped",
                |c| c.filtered_publications.value(),
            ),
        ];
        let hubs = self.0.hubs();
        let sum = |read: Read| hubs.iter().map(|hub| read(hub)).sum::<u64>() as usize;
        let help = "Connections with a log of the flight recorder, open or ended";
        writer.gauge("recorder_connections", help, sum(|c| c.recorded_connections.value()))?;
        let help = "Bytes of the flight recorder";
        writer.gauge("recorder_bytes", help, sum(|c| c.recorder_bytes.value()))?;
        for (name, help, read) in rows {
            writer.counters(name, help, [([], hubs.iter().map(|hub| read(hub)).sum())])?;
        }
        let mut clients = BTreeMap::<[&str; 2], u64>::new();
        for (labels, count) in hubs.iter().flat_map(|hub| hub.clients()) {
            *clients.entry(labels).or_default() += count;
        }
        let clients = clients.into_iter().filter(|(_, count)| *count > 0);
        let clients = clients.map(|([transport, name], count)| {
            ([("transport", transport.to_owned()), ("client_name", name.to_owned())], count)
        });
        let help = "Connected clients by transport and SDK";
        writer.gauges("client_connections_inflight", help, clients)?;
        let pings = HistogramSum::of(hubs.iter().map(|hub| &hub.ping_pong));
        let help = "From a ping to its pong: the network and the client";
        shard::histogram(writer, "client_ping_pong_duration_seconds", help, &[([], pings)])
    }

    fn hubs_by_label(&self, writer: &mut impl MetricsWriter) -> fmt::Result {
        let hubs = self.0.hubs();
        let hubs = || hubs.iter();
        let recoveries = hubs().flat_map(|hub| {
            let no = hub.failed_recoveries.iter().map(|count| count.value()).sum();
            [("yes".to_owned(), hub.recoveries.value()), ("no".to_owned(), no)]
        });
        let unrecovered = hubs().flat_map(|hub| {
            let counts = Unrecovered::ALL.into_iter().zip(&hub.failed_recoveries);
            counts.map(|(cause, count)| (cause.name().to_owned(), count.value()))
        });
        writer.counters("client_recover", "Recovery attempts", sums("recovered", recoveries))?;
        let help = "Recovery attempts that failed, by what was missing";
        writer.counters("client_unrecovered", help, sums("cause", unrecovered))?;
        let limited = hubs().flat_map(|hub| {
            [
                ("command".to_owned(), hub.limited_commands.value()),
                ("publish".to_owned(), hub.limited_publishes.value()),
                ("subscribe".to_owned(), hub.limited_subscribes.value()),
            ]
        });
        writer.counters(
            "client_rate_limited",
            "Commands refused with 111",
            sums("limit", limited),
        )?;
        let refused = hubs()
            .flat_map(|hub| hub.token_refusals().map(|(cause, n)| (cause.name().to_owned(), n)));
        writer.counters("client_token_refusals", "Tokens refused", sums("cause", refused))?;
        let commands =
            hubs().flat_map(|hub| hub.commands().map(|(kind, n)| (kind.name().to_owned(), n)));
        writer.counters("client_commands", "Commands received", sums("method", commands))?;
        let errors = hubs().flat_map(|hub| hub.errors().map(|(code, n)| (code_label(code), n)));
        writer.counters("client_num_reply_errors", "Error replies", sums("code", errors))?;
        let ends = hubs().flat_map(|hub| {
            hub.disconnects().map(|(code, n)| (code_label(code.map(u32::from)), n))
        });
        writer.counters(
            "client_num_server_disconnects",
            "Disconnects by the server",
            sums("code", ends),
        )
    }

    fn api(&self, writer: &mut impl MetricsWriter) -> fmt::Result {
        let methods = |(protocol, api): &(&'static str, Arc<Api>)| {
            let labels = |method: Method| {
                [("protocol", (*protocol).to_owned()), ("method", method.name().to_owned())]
            };
            let all = Method::ALL.map(|method| (labels(method), api.counters().of(method)));
            all.into_iter().filter(|(_, counts)| counts.calls > 0)
        };
        let methods: Vec<_> = self.0.apis.iter().flat_map(methods).collect();
        let rows = |read: fn(&MethodCounts) -> u64| {
            methods.iter().map(move |(labels, counts)| (labels.clone(), read(counts)))
        };
        writer.counters("api_commands", "Calls of the server API", rows(|counts| counts.calls))?;
        writer.counters(
            "api_command_errors",
            "Calls that ended in an error",
            rows(|counts| counts.errors),
        )?;
        let refused = self.0.apis.iter().flat_map(|(protocol, api)| {
            let refusals = api.counters().refusals();
            let refused = [
                ("unauthorized", refusals.unauthorized),
                ("malformed", refusals.malformed),
                ("too_large", refusals.too_large),
            ];
            refused.map(|(reason, count)| {
                ([("protocol", (*protocol).to_owned()), ("reason", reason.to_owned())], count)
            })
        });
        writer.counters("api_refusals", "Requests refused before a method was called", refused)?;
        let callers = self.0.apis.iter().flat_map(|(protocol, api)| {
            let row = |caller: Arc<KeyHolder>| {
                let labels = [("protocol", (*protocol).to_owned()), ("key", caller.name.clone())];
                (labels, caller.counts())
            };
            api.callers().into_iter().map(row).collect::<Vec<_>>()
        });
        let callers: Vec<_> = callers.filter(|(_, [calls, ..])| *calls > 0).collect();
        let rows = |index: usize| {
            callers.iter().map(move |(labels, counts)| (labels.clone(), counts[index]))
        };
        let help = "Commands by the name of the key of their sender";
        writer.counters("api_key_commands", help, rows(0))?;
        let help = "Commands that the key does not permit: error 103";
        writer.counters("api_key_refusals", help, rows(1))?;
        let help = "Commands above the rate of the key: error 111";
        writer.counters("api_key_limited", help, rows(2))?;
        let latencies: Vec<_> = methods
            .iter()
            .map(|(labels, counts)| {
                (labels.clone(), &counts.buckets[..], counts.time.as_secs_f64())
            })
            .collect();
        writer.histogram(
            "api_command_duration_seconds",
            "Time inside a method",
            &LATENCY_BOUNDS_US,
            &latencies,
        )
    }
}

/// Sums the counts of the hubs by name, as rows labelled with that name.
fn sums(
    label: &'static str,
    counts: impl Iterator<Item = (String, u64)>,
) -> impl Iterator<Item = (Labels<1>, u64)> {
    let mut sums = BTreeMap::<String, u64>::new();
    for (name, count) in counts {
        *sums.entry(name).or_default() += count;
    }
    sums.into_iter().map(move |(name, sum)| ([(label, name)], sum))
}

/// The last line of OpenMetrics text.
const END: &str = "# EOF\n";

/// The label of a code: its number if the protocol defines it, else `other`, so that the number of series stays bounded.
fn code_label(code: Option<u32>) -> String {
    code.map_or_else(|| "other".to_owned(), |code| code.to_string())
}
