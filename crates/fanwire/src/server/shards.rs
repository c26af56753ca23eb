//! The shards of a server: how many, with which settings.
//! In: the configuration and the node → out: running shards, attached to the node.
//! Uses `fanout`, whose application runs on them. Never: a connection.
//! Changed here: which key sets what of a shard.

use std::sync::Arc;

use fanwire_config::Config;
use fanwire_edge::settings as endpoints;
use fanwire_fanout::{Contexts, EncodeWorker, Realtime, RealtimeCounters, ShardInbox, Shards};
use fanwire_node::{Node, ShardId};
use fanwire_protocol::Disconnect;
use fanwire_shard::{Budget, DecodeFailures, DedicatedSettings, ShardSettings};
use parking_lot::Mutex;

use crate::error::StartError;

/// The shards of a server, and what they count.
pub(super) struct RunningShards {
    pub(super) shards: Arc<Shards>,
    pub(super) realtime_counters: Arc<Mutex<Vec<RealtimeCounters>>>,
    pub(super) decode_failures: Arc<DecodeFailures>,
}

impl RunningShards {
    pub(super) fn start(
        config: &Config,
        node: &Arc<Node>,
        contexts: &Arc<Contexts>,
    ) -> Result<Self, StartError> {
        let decode_failures = Arc::<DecodeFailures>::default();
        let realtime_counters = Arc::<Mutex<Vec<RealtimeCounters>>>::default();
        let settings = settings(config, contexts.memory(), decode_failures.clone());
        let encode_worker = EncodeWorker::start().map_err(StartError::Shards)?;
        let joins_pushes = config.uni_websocket.join_push_messages;
        let hub_node = node.clone();
        let contexts = contexts.clone();
        let counters = realtime_counters.clone();
        let shards = Shards::start(&settings, move |number| {
            let shard = ShardId(u16::try_from(number).expect("fewer than 65,536 shards"));
            let realtime =
                Realtime::new(hub_node.clone(), shard, contexts.clone(), encode_worker.clone())
                    .join_pushes(joins_pushes);
            counters.lock().push(realtime.counters());
            realtime
        })
        .map_err(StartError::Shards)?;
        for inbox in shards.inboxes() {
            node.attach(Arc::new(ShardInbox(inbox.clone())));
        }
        Ok(Self { shards, realtime_counters, decode_failures })
    }
}

fn settings(
    config: &Config,
    memory: &Arc<Budget>,
    decode_failures: Arc<DecodeFailures>,
) -> ShardSettings {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let websocket = &config.websocket;
    let message_bytes_max = websocket.message_size_limit;
    ShardSettings {
        shards: if config.shards == 0 { cores() } else { config.shards },
        queue_bytes_max: config.client.queue_max_size,
        slow_close: (Disconnect::SLOW.code, "slow"),
        last_message: fanwire_fanout::last_message,
        write_timeout: websocket.write_timeout,
        write_delay: config.client.write_delay,
        write_delay_under_load: config.client.write_delay_under_load,
        reply_without_queue: config.client.reply_without_queue,
        compression_min_bytes: websocket.compression_min_size,
        compression_level: websocket.compression_level,
        compression_verify: websocket.compression_verify,
        dedicated: DedicatedSettings {
            window_bits: websocket.compression_dedicated.window_bits,
            memory_level: websocket.compression_dedicated.memory_level,
            level: websocket.compression_level,
            strategy: websocket.compression_dedicated.strategy,
            memory: memory.clone(),
        },
        decode_failures,
        message_bytes_max,
        inflated_bytes_max: match websocket.decompressed_message_size_limit {
            0 => message_bytes_max.saturating_mul(10),
            limit => limit,
        },
        fragments_max: websocket.fragments_max,
        uni_websocket: endpoints::uni_websocket_settings(&config.uni_websocket),
    }
}
