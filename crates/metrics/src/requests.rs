//! Counts of HTTP requests, for `prometheus.instrument_http_handlers`.
//! In: path, method and status of requests → out: rows for the writer.
//! Uses a small table behind a lock. Never: a label that clients can choose.
//! Changed here: the labels. Requests that shards answer (those of clients without TLS) are counted there.

use std::collections::BTreeMap;

use fanwire_telemetry::MetricsWriter;
use http::Method;
use parking_lot::Mutex;

/// Requests by handler, method and status.
#[derive(Debug, Default)]
pub struct RequestCounts {
    /// The paths of handlers.
    prefixes: Vec<String>,
    counts: Mutex<BTreeMap<(HandlerId, &'static str, u16), u64>>,
}

/// The index of a handler; the number of handlers for a path that none has.
pub type HandlerId = usize;

impl RequestCounts {
    /// Counts of requests below these paths, and of others.
    pub fn new(prefixes: impl IntoIterator<Item = String>) -> Self {
        Self { prefixes: prefixes.into_iter().collect(), counts: Mutex::default() }
    }

    /// The handler with the longest path that `path` is, or is below.
    pub fn handler(&self, path: &str) -> HandlerId {
        let is_below = |prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let matching = self.prefixes.iter().enumerate().filter(|(_, prefix)| is_below(prefix));
        let longest = matching.max_by_key(|(_, prefix)| prefix.len());
        longest.map_or(self.prefixes.len(), |(index, _)| index)
    }

    /// Counts a request that was answered.
    pub fn record(&self, handler: HandlerId, method: &Method, status: u16) {
        let method = METHODS.iter().find(|known| **known == method.as_str());
        let row = (handler, method.copied().unwrap_or(OTHER), status);
        *self.counts.lock().entry(row).or_default() += 1;
    }

    pub(super) fn write(&self, writer: &mut impl MetricsWriter) {
        let counts = self.counts.lock().clone();
        let rows = counts.into_iter().map(|((handler, method, status), count)| {
            let path = self.prefixes.get(handler).map_or(OTHER, String::as_str);
            let labels = [("path", path), ("method", method), ("status", &status.to_string())];
            (labels.map(|(name, value)| (name, value.to_owned())), count)
        });
        writer.counters("http_requests", "Requests that were answered", rows);
    }
}

/// Other methods are chosen by clients (RFC 9110 §9.1).
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"];
const OTHER: &str = "other";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_belongs_to_the_handler_with_the_longest_path() {
        let counts = RequestCounts::new(["/", "/api", "/admin/api"].map(str::to_owned));
        let of = |path| counts.handler(path);
        assert_eq!([of("/api"), of("/api/publish"), of("/admin/api")], [1, 1, 2]);
        assert_eq!([of("/"), of("/apiary"), of("")], [0, 3, 3]);
        let foreign = Method::from_bytes(b"BREW").expect("a token");
        [&Method::POST, &Method::POST, &foreign]
            .iter()
            .for_each(|method| counts.record(1, method, 200));
        let found: Vec<_> = counts.counts.lock().clone().into_iter().collect();
        assert_eq!(found, [((1, "POST", 200), 2), ((1, "other", 200), 1)]);
    }
}
