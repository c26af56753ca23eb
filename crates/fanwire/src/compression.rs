//! The settings of compression, as the operator's keys give them.
//! In: the configuration → out: the histories of channels.
//! Uses `fanout`; contains no behaviour of its own.
//! Changed here: which key sets what. Compressors of single connections are part of the shards' settings, in `server`; what is agreed to
//! in handshakes is in `edge`.

use std::sync::Arc;

use fanwire_config::Config;
use fanwire_fanout::{ContextSettings, Contexts, GAPS_MAX, Policies};
use fanwire_shard::Budget;

/// The histories of channels, with the memory budget of all compression, which prepare the publications of a node.
pub(crate) fn contexts(config: &Config) -> Arc<Contexts> {
    let websocket = &config.websocket;
    Arc::new(Contexts::new(ContextSettings {
        policies: Policies::new(&config.node_options().channel),
        level: websocket.compression_level,
        min_bytes: websocket.compression_min_size,
        gaps_max: GAPS_MAX,
        memory: Budget::new(websocket.compression_memory_max),
    }))
}
