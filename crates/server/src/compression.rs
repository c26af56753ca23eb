//! The settings of compression, as the operator's keys give them.
//! In: the configuration → out: the histories of channels, and what is agreed to in handshakes.
//! Uses `fanout` and `ws`; contains no behaviour of its own.
//! Changed here: which key sets what. Compressors of single connections are part of the shards' settings, in `server`.

use fanwire_fanout::{ContextSettings, Contexts, GAPS_MAX, Policies};
use fanwire_ws::extension::{ClientTakeover, ExtensionSettings};

use crate::{
    config::{Config, WebsocketOptions},
    shard::Budget,
};

/// The histories of channels, with the memory budget of all compression.
pub(crate) fn contexts(config: &Config) -> Contexts {
    let websocket = &config.websocket;
    Contexts::new(ContextSettings {
        policies: Policies::new(&config.node.channel),
        level: websocket.compression_level,
        min_bytes: websocket.compression_min_size,
        gaps_max: GAPS_MAX,
        memory: Budget::new(websocket.compression_memory_max),
    })
}

/// What handshakes agree to.
pub(crate) fn extension(websocket: &WebsocketOptions) -> ExtensionSettings {
    let client_takeover = ClientTakeover {
        window_bits: websocket.client_max_window_bits,
        requires_choice: websocket.require_client_max_window_bits,
    };
    ExtensionSettings {
        enabled: websocket.compression,
        server_window_bits: websocket.server_max_window_bits,
        client_takeover: websocket.client_context_takeover.then_some(client_takeover),
    }
}
