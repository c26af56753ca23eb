//! `websocket.*`: the endpoint of bidirectional WebSockets, and what its connections obey.
//! In: values of the rows → out: the section, and the part of it that handshakes obey.
//! Uses the options of `edge`. Never: a connection; `fanwire` gives the shards their settings.
//! Changed here: the fields of the section, which have the names of their keys.

use std::time::Duration;

use fanwire_edge::WebsocketEndpointOptions;

/// `websocket.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebsocketOptions {
    pub disabled: bool,
    pub handler_prefix: String,
    /// Answer offers of permessage-deflate.
    pub compression: bool,
    /// Bytes; shorter messages go out uncompressed.
    pub compression_min_size: usize,
    /// 1 (fastest) to 9 (smallest).
    pub compression_level: u8,
    /// Answer offers of Apple's NSURLSession too.
    pub compression_apple: bool,
    /// Bytes for the histories of channels, for compressors of single connections, and for windows of clients.
    pub compression_memory_max: usize,
    /// Inflate every compressed frame before it is sent, and compare.
    pub compression_verify: bool,
    pub compression_dedicated: DedicatedOptions,
    /// Window of our own messages at most, 9 to 15.
    pub server_max_window_bits: u8,
    /// Messages of clients may refer to earlier ones, at the cost of a window for each connection.
    pub client_context_takeover: bool,
    /// Window of a client that lets the server choose, 9 to 15.
    pub client_max_window_bits: u8,
    /// Decline offers that do not let the server choose.
    pub require_client_max_window_bits: bool,
    /// Bytes of one incoming message on the wire; longer → close 1009.
    pub message_size_limit: usize,
    /// Bytes of one incoming message after inflating; 0 = ten times `message_size_limit`.
    pub decompressed_message_size_limit: usize,
    /// Fragments of one incoming message.
    pub fragments_max: u32,
    /// How long a write may make no progress before the connection is closed.
    pub write_timeout: Duration,
}

/// `websocket.compression_dedicated.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DedicatedOptions {
    /// A compressor for each connection that allows it, instead of frames shared between connections.
    pub enabled: bool,
    /// Bits of the server's window, 9 to 15.
    pub window_bits: u8,
    /// 1 to 9.
    pub memory_level: u8,
    pub strategy: fanwire_deflate::Strategy,
}

impl From<&WebsocketOptions> for WebsocketEndpointOptions {
    fn from(websocket: &WebsocketOptions) -> Self {
        Self {
            disabled: websocket.disabled,
            handler_prefix: websocket.handler_prefix.clone(),
            compression: websocket.compression,
            compression_apple: websocket.compression_apple,
            has_dedicated_compression: websocket.compression_dedicated.enabled,
            server_max_window_bits: websocket.server_max_window_bits,
            client_context_takeover: websocket.client_context_takeover,
            client_max_window_bits: websocket.client_max_window_bits,
            require_client_max_window_bits: websocket.require_client_max_window_bits,
        }
    }
}
