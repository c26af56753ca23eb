//! A publish of the server API that a shard reads itself, with an engine in memory: the thread that reads a publication delivers it.
//! In: plain requests to the path of publish → out: their responses, as hyper would send them.
//! Uses the API service; never a method that waits, and no request while the shards lag.
//! Changed here: which requests hyper gets. What is plain is decided in `edge::accept::plain_request`.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Bytes,
    http::{Method, request},
};
use fanwire_edge::{PlainEndpoint, PlainOutcome, keeps_connection};
use fanwire_metrics::RequestCounts;
use fanwire_shard::{INBOX_BYTES_MAX, wake_shards_after};

use super::api_service::ApiService;

/// The method publish of the server API.
pub(super) struct PlainPublish {
    pub(super) api: Arc<ApiService>,
    /// Counts of requests, if they are counted.
    pub(super) requests: Option<Arc<RequestCounts>>,
}

impl PlainEndpoint for PlainPublish {
    fn answer(&self, head: &request::Parts, body: &[u8], peer: SocketAddr) -> Option<PlainOutcome> {
        // On the runtime a request waits until the shards have caught up.
        let is_busy = self.api.shards.backlog_bytes() > INBOX_BYTES_MAX;
        if is_busy || head.method != Method::POST || !keeps_connection(&head.headers) {
            return None;
        }
        let publish = || self.api.http_api.publish_in_memory(head, body, peer);
        let response = wake_shards_after(publish)?;
        if let Some(requests) = &self.requests {
            let handler = requests.handler(head.uri.path());
            requests.record(handler, &head.method, response.status().as_u16());
        }
        let json = |body: Bytes| String::from_utf8(body.into()).expect("JSON is UTF-8");
        Some(PlainOutcome::Answer(response.map(json)))
    }
}
