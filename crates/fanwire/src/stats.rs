//! The totals of a server, for the program around it and the demo page.
//! In: the counters of a running server → out: plain numbers.
//! Uses `fanwire_metrics`. Never: HTTP.
//! Changed here: which totals a program reads without a scrape.

use fanwire_metrics::ServerMetrics;
use serde::Serialize;

/// The totals of a server since its start. [`Server::stats`](crate::Server::stats) reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerStats {
    /// Bytes of the payloads that were sent to clients, before compression.
    pub payload_bytes: u64,
    /// Bytes that were written to the sockets of clients.
    pub wire_bytes: u64,
    /// Publications handed to subscribers.
    pub deliveries: u64,
    /// Connections at this moment.
    pub connections: usize,
}

impl ServerStats {
    pub(crate) fn of(metrics: &ServerMetrics) -> Self {
        let sent = metrics.sent();
        Self {
            payload_bytes: sent.payload_bytes,
            wire_bytes: sent.wire_bytes,
            deliveries: metrics.deliveries(),
            connections: metrics.connections(),
        }
    }
}
