//! The metrics of a running server for Prometheus, and for `info` of the server API.
//! In: counters of shards, hubs, node and API → out: one text per scrape, readings; only requests and reloads are counted here.
//! Uses the writers of `telemetry`; reads relaxed, so a scrape never slows a shard.
//! Changed here: the sources and metrics of the node; a file for each other source. Counters live in the code that increments them.
#![forbid(unsafe_code)]

mod api;
mod certificates;
mod compression;
mod consumers;
mod delivery;
mod engine;
mod events;
mod hubs;
mod proxies;
mod reloads;
mod requests;
mod rooms;
mod shard;
mod snapshots;
mod tls;
mod usage;

use std::sync::{Arc, Weak};

use fanwire_api::Api;
use fanwire_consumers::ConsumerMonitor;
use fanwire_edge::{Overload, Refusals};
use fanwire_events::Events;
use fanwire_fanout::{BacklogCounters, Contexts, RealtimeCounters, Shards};
use fanwire_node::{HubCounters, Meters, Node};
use fanwire_profile::process;
use fanwire_proxy::EventProxies;
use fanwire_redis::Redis;
use fanwire_telemetry::{MetricsWriter, Reading, Readings, ScrapeWriter, TextFormat};
use fanwire_tls::{Certificates, HandshakeCounts, ListenersTls};
use parking_lot::Mutex;

pub use self::reloads::Reloads;
pub use self::requests::{HandlerId, RequestCounts};
pub use self::rooms::{RoomTotals, TickTimes};
pub use self::snapshots::SnapshotReadings;

/// All metrics of a server.
pub struct ServerMetrics {
    sources: Arc<Sources>,
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
    pub overload: Arc<Overload>,
    pub tls: ListenersTls,
    pub tls_handshakes: Arc<HandshakeCounts>,
    /// Those that an authority issues.
    pub certificates: Option<Arc<Certificates>>,
    pub rooms: Option<Box<dyn Fn() -> RoomTotals + Send + Sync>>,
    pub proxies: Option<EventProxies>,
    pub events: Option<Events>,
    pub consumers: Option<ConsumerMonitor>,
    pub reloads: Arc<Reloads>,
    /// Those of the memory engine, if it has a file.
    pub snapshots: Option<Box<dyn Fn() -> SnapshotReadings + Send + Sync>>,
    /// Only if they are counted.
    pub requests: Option<Arc<RequestCounts>>,
    /// Metrics have the names of Centrifugo, too.
    pub has_centrifugo_names: bool,
}

impl Sources {
    /// The counters of each shard's hub.
    fn hubs(&self) -> Vec<Arc<HubCounters>> {
        self.realtime_counters.lock().iter().map(|counters| counters.hub.clone()).collect()
    }

    /// The counters of each shard's backlogs, by namespace.
    fn backlogs(&self) -> Vec<Arc<[BacklogCounters]>> {
        self.realtime_counters.lock().iter().map(|counters| counters.backlogs.clone()).collect()
    }

    fn write(&self, writer: &mut impl MetricsWriter) {
        self.write_node(writer);
        shard::write(&self.shards, writer);
        process::write(writer);
        self.reloads.write(writer);
        if let Some(snapshots) = &self.snapshots {
            snapshots().write(writer);
        }
        if let Some(requests) = &self.requests {
            requests.write(writer);
        }
        tls::write(&self.tls, &self.tls_handshakes, writer);
        hubs::write(&self.hubs(), writer);
        let names = self.node.namespace_names();
        compression::write(&self.contexts, &names, writer);
        delivery::write(&self.backlogs(), &names, writer);
        usage::write(self.node.channels().usage(), &self.hubs(), writer);
        engine::write(self.redis.as_deref(), &self.node, writer);
        if let Some(certificates) = &self.certificates {
            certificates::write(certificates, writer);
        }
        if let Some(rooms) = &self.rooms {
            rooms::write(&rooms(), writer);
        }
        if let Some(proxies) = &self.proxies {
            proxies::write(proxies, writer);
        }
        if let Some(events) = &self.events {
            events::write(events, writer);
        }
        if let Some(tracer) = fanwire_telemetry::tracer() {
            let help = "Spans of traces that were dropped: the collector does not take them";
            writer.counter("opentelemetry_spans_dropped", help, tracer.dropped());
        }
        if let Some(consumers) = &self.consumers {
            consumers::write(consumers, writer);
        }
        api::write(&self.apis, writer);
    }

    /// Only scrapes call it: it reads the size of each history, which the readings of `info` must not cost a node by itself.
    fn write_histories(&self, writer: &mut impl MetricsWriter) {
        let bytes = self
            .node
            .diagnostics()
            .history_by_namespace()
            .into_iter()
            .map(|(namespace, bytes)| ([("namespace", namespace)], bytes));
        let help = "Approximate memory of the histories of a namespace in bytes";
        writer.gauges("node_namespace_history_bytes", help, bytes);
    }

    fn write_node(&self, writer: &mut impl MetricsWriter) {
        let counts = self.node.counts();
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
            ("transport_connections", "Open connections, in any state", self.shards.connections()),
        ];
        for (name, help, value) in gauges {
            writer.gauge(name, help, value as u64);
        }
        let namespaces = self
            .node
            .channels()
            .subscriptions_by_namespace()
            .into_iter()
            .filter(|(_, count)| *count > 0);
        let rows = namespaces.map(|(name, count)| ([("namespace", name)], count as u64));
        let help = "Subscriptions by the namespace of their channel";
        writer.gauges("client_subscriptions_inflight", help, rows);
        let evictions = self.node.channels().history_evictions();
        let help = "Histories that were dropped, because channel.history_memory_max is reached";
        writer.counter("node_history_evictions", help, evictions);
        let refused = self
            .refusals
            .counts()
            .map(|(cause, count)| ([("cause", cause.name().to_owned())], count));
        writer.counters("transport_handshakes_refused", "Handshakes refused, by cause", refused);
        let reasons = self.overload.reasons().map(|(cause, is_exceeded)| {
            ([("reason", cause.name().to_owned())], u64::from(is_exceeded))
        });
        let help = "1 while new clients are refused for the load of this node, by reason";
        writer.gauges("shed_active", help, reasons);
        let keys = self.node.key_counters();
        let help = "Requests for JWKS documents";
        writer.counter("token_key_fetches", help, keys.fetches);
        let help = "Requests for JWKS documents that failed or returned no valid key set";
        writer.counter("token_key_fetch_failures", help, keys.failures);
    }
}

impl ServerMetrics {
    pub fn new(sources: Sources) -> Self {
        Self { sources: Arc::new(sources) }
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
        let mut writer = ScrapeWriter::new(format, self.sources.has_centrifugo_names);
        process::standard(&mut writer);
        writer.set_prefix("fanwire_");
        self.sources.write(&mut writer);
        self.sources.write_histories(&mut writer);
        writer.finish()
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

/// Weak, because the node stores it and the sources contain the node.
struct NodeMeters(Weak<Sources>);

impl Meters for NodeMeters {
    fn read(&self) -> Vec<Reading> {
        let mut readings = Readings::default();
        if let Some(sources) = self.0.upgrade() {
            sources.write(&mut readings);
            process::standard(&mut readings);
        }
        readings.0
    }
}

#[cfg(test)]
mod tests;
