//! The WebSocket endpoints of a server: what their handshakes allow, and which limits their shards obey.
//! In: options of endpoints and the parts that endpoints share → out: an endpoint for each transport.
//! Uses `upgrade` and `admission`, which do the work. Never: a request.
//! Changed here: which keys an endpoint obeys. Its path is in `routes`.

use std::sync::Arc;

use fanwire_fanout::{Realtime, Shards};
use fanwire_shard::{Budget, DecodeFailures, Transport, UniWebSocketSettings};
use fanwire_ws::extension::{ClientTakeover, ExtensionSettings};

use super::{
    admission::{Admission, SharedLimits},
    refusals::Refusals,
    upgrade::Endpoint,
    websocket,
};
use crate::descriptors;
use crate::options::{ClientEndpoints, UniWebsocketOptions, WebsocketEndpointOptions};

/// The endpoint of [`Transport::WebSocket`] and that of [`Transport::UniWebSocket`], which has no subprotocol.
pub fn websockets(
    options: &ClientEndpoints,
    shards: &Arc<Shards>,
    compression_memory: &Arc<Budget>,
    decode_failures: &Arc<DecodeFailures>,
    admission: impl Fn() -> Admission,
) -> [Endpoint<Realtime>; 2] {
    let websocket = &options.websocket;
    let endpoint = |transport: Transport, extension, subprotocols| Endpoint {
        shards: Arc::clone(shards),
        compression: extension,
        compression_memory: Arc::clone(compression_memory),
        compression_apple: websocket.compression_apple,
        compression_dedicated: websocket.has_dedicated_compression
            && !transport.is_unidirectional(),
        decode_failures: Arc::clone(decode_failures),
        subprotocols,
        transport,
        admission: admission(),
    };
    let enabled = options.uni_websocket.compression;
    let unidirectional = ExtensionSettings { enabled, ..ExtensionSettings::default() };
    [
        endpoint(Transport::WebSocket, extension(websocket), websocket::SUBPROTOCOLS),
        endpoint(Transport::UniWebSocket, unidirectional, &[]),
    ]
}

/// The limits of an endpoint on new connections. The demo page of this server connects from its own origin.
pub fn admission(
    limits: &SharedLimits,
    allows_own_origin: bool,
    descriptors: usize,
    refusals: &Arc<Refusals>,
) -> Admission {
    Admission {
        limits: Arc::clone(limits),
        allows_own_origin,
        descriptor_limit: descriptors::for_clients(descriptors),
        refusals: Arc::clone(refusals),
    }
}

/// The settings of shards for unidirectional WebSockets.
pub fn uni_websocket_settings(options: &UniWebsocketOptions) -> UniWebSocketSettings {
    let message_bytes_max = options.message_size_limit;
    UniWebSocketSettings {
        write_timeout: options.write_timeout,
        compression_min_bytes: options.compression_min_size,
        compression_level: options.compression_level,
        message_bytes_max,
        inflated_bytes_max: match options.decompressed_message_size_limit {
            0 => message_bytes_max.saturating_mul(10),
            limit => limit,
        },
        sends_last_message: !options.disable_disconnect_push,
        sends_close_frame: !options.disable_closing_handshake,
    }
}

/// The extensions and limits that handshakes agree to.
fn extension(websocket: &WebsocketEndpointOptions) -> ExtensionSettings {
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
