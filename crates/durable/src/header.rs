//! The names of the protocol's headers.
//! In: nothing → out: names.
//! Pure. Never: values.
//! Changed here: names. Values of requests are in `request`, those of responses in `response`.

use http::HeaderName;

pub(crate) const STREAM_TTL: HeaderName = HeaderName::from_static("stream-ttl");
pub(crate) const STREAM_EXPIRES_AT: HeaderName = HeaderName::from_static("stream-expires-at");
pub(crate) const STREAM_CLOSED: HeaderName = HeaderName::from_static("stream-closed");
pub(crate) const STREAM_SEQ: HeaderName = HeaderName::from_static("stream-seq");
pub(crate) const PRODUCER_ID: HeaderName = HeaderName::from_static("producer-id");
pub(crate) const PRODUCER_EPOCH: HeaderName = HeaderName::from_static("producer-epoch");
pub(crate) const PRODUCER_SEQ: HeaderName = HeaderName::from_static("producer-seq");
pub(crate) const EXPECTED_SEQ: HeaderName = HeaderName::from_static("producer-expected-seq");
pub(crate) const RECEIVED_SEQ: HeaderName = HeaderName::from_static("producer-received-seq");
pub(crate) const NEXT_OFFSET: HeaderName = HeaderName::from_static("stream-next-offset");
pub(crate) const UP_TO_DATE: HeaderName = HeaderName::from_static("stream-up-to-date");
pub(crate) const CURSOR: HeaderName = HeaderName::from_static("stream-cursor");
pub(crate) const SSE_ENCODING: HeaderName = HeaderName::from_static("stream-sse-data-encoding");
/// Headers of a fork, which this server refuses.
pub(crate) const FORK: [HeaderName; 3] = [
    HeaderName::from_static("stream-forked-from"),
    HeaderName::from_static("stream-fork-offset"),
    HeaderName::from_static("stream-fork-sub-offset"),
];
