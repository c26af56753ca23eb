//! Rows of Durable Streams: `durable_streams`.
//! In: nothing → out: `DURABLE`, rows that set fields of `Config`.
//! Uses the kinds of `keys`. Never: streams.
//! Change a default, a limit or a sentence here; the effects live in `fanwire_durable`.

use std::time::Duration;

use super::{BYTES, COUNT_FROM_1, DAY, PATH, SWITCH, TEXT, duration};
use crate::key::rows;
use crate::options::Config;

rows! { DURABLE: Config;
    "durable_streams.enabled", SWITCH, "false" => [durable_streams.enabled],
        "Fanwire only: serves the channels of a namespace as Durable Streams over HTTP.";
    "durable_streams.handler_prefix", PATH, "/v1/stream" => [durable_streams.handler_prefix],
        "Fanwire only: path in front of the names of streams.";
    "durable_streams.namespace", TEXT, "" => [durable_streams.namespace],
        "Fanwire only: namespace whose channels are the streams; it needs history_size and history_ttl.";
    "durable_streams.insecure", SWITCH, "false" => [durable_streams.insecure],
        "Fanwire only: needs neither a key for writes nor a token for reads; for tests on loopback.";
    "durable_streams.max_request_body_size", BYTES, "16777216" => [durable_streams.max_request_body_size],
        "Fanwire only: longest body of a request in bytes; a longer one gets 413.";
    "durable_streams.max_streams", COUNT_FROM_1, "100000" => [durable_streams.max_streams],
        "Fanwire only: most streams at the same time; a request that would create another one gets 429.";
    "durable_streams.max_producers", COUNT_FROM_1, "1000" => [durable_streams.max_producers],
        "Fanwire only: most idempotent producers that a stream remembers, each for seven days; another one gets 429.";
    "durable_streams.max_live_reads", COUNT_FROM_1, "10000" => [durable_streams.max_live_reads],
        "Fanwire only: most reads that wait for data at the same time; another one gets 429.";
    "durable_streams.max_live_reads_per_user", COUNT_FROM_1, "100" => [durable_streams.max_live_reads_per_user],
        "Fanwire only: most reads of one user that wait at the same time, 100 as the streams of one browser's HTTP/2 connection; another one gets 429.";
    "durable_streams.long_poll_timeout", duration(Duration::from_millis(1), DAY), "30s" => [durable_streams.long_poll_timeout],
        "Fanwire only: how long a read with live=long-poll waits for data.";
    "durable_streams.sse_timeout", duration(Duration::from_millis(1), DAY), "60s" => [durable_streams.sse_timeout],
        "Fanwire only: how long a response to live=sse lasts; clients return with the last offset.";
}
