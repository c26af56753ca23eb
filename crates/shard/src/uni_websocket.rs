//! What differs between unidirectional WebSockets and others on the same shard: limits, compression, and their end.
//! In: settings → out: the limits for a transport.
//! Uses `ws`. Never: sockets; the end of a connection is in `connection_writer::closes`, its frames are made by a framer of their own.
//! Changed here: settings of `uni_websocket` that a shard obeys.

use std::time::Duration;

use fanwire_ws::Limits;

use super::{ShardSettings, transport::Transport};

/// Settings of connections with [`Transport::UniWebSocket`]; further ones are those of all connections.
#[derive(Clone, Debug)]
pub struct UniWebSocketSettings {
    /// As `ShardSettings::write_timeout`.
    pub write_timeout: Duration,
    /// As `ShardSettings::compression_min_bytes`.
    pub compression_min_bytes: usize,
    /// As `ShardSettings::compression_level`.
    pub compression_level: u8,
    pub message_bytes_max: usize,
    pub inflated_bytes_max: usize,
    /// `ShardSettings::last_message` is sent before the close frame.
    pub sends_last_message: bool,
    /// A close frame is sent, and the peer's awaited. Otherwise the connection ends behind its last message.
    pub sends_close_frame: bool,
}

impl Default for UniWebSocketSettings {
    /// The defaults of the configuration.
    fn default() -> Self {
        Self {
            write_timeout: Duration::from_secs(1),
            compression_min_bytes: 128,
            compression_level: 6,
            message_bytes_max: 64 << 10,
            inflated_bytes_max: 640 << 10,
            sends_last_message: true,
            sends_close_frame: true,
        }
    }
}

/// Limits for messages of peers.
#[derive(Clone, Debug, Default)]
pub(super) struct InputLimits {
    websocket: Limits,
    uni_websocket: Limits,
}

impl InputLimits {
    pub(super) fn of_settings(settings: &ShardSettings) -> Self {
        let fragments_max = settings.fragments_max;
        let ShardSettings { message_bytes_max, inflated_bytes_max, uni_websocket, .. } = settings;
        Self {
            websocket: Limits {
                message_bytes_max: *message_bytes_max,
                inflated_bytes_max: *inflated_bytes_max,
                fragments_max,
            },
            uni_websocket: Limits {
                message_bytes_max: uni_websocket.message_bytes_max,
                inflated_bytes_max: uni_websocket.inflated_bytes_max,
                fragments_max,
            },
        }
    }

    pub(super) fn of(&self, transport: Transport) -> &Limits {
        match transport {
            Transport::UniWebSocket => &self.uni_websocket,
            _ => &self.websocket,
        }
    }
}
