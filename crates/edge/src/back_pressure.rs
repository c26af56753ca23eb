//! Back-pressure on requests: they wait until the shards have caught up.
//! In: the shards → out: nothing, when no inbox is too full.
//! Uses tokio's timer; never waits longer than its caller.
//! Changed here: how often it looks. How full an inbox may be is a constant of `shard`.

use std::time::Duration;

use fanwire_fanout::Shards;
use fanwire_shard::INBOX_BYTES_MAX;
use tokio::time::sleep;

/// Returns when the shards have caught up.
pub async fn wait_for_shards(shards: &Shards) {
    while shards.backlog_bytes() > INBOX_BYTES_MAX {
        sleep(BACKLOG_PAUSE).await;
    }
}

/// The longest time that a request waits.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A shard drains its whole inbox in a few milliseconds.
const BACKLOG_PAUSE: Duration = Duration::from_millis(1);
