//! Options of the endpoints of clients: which there are, at which paths, and what each obeys.
//! In: nothing → out: plain data.
//! Uses values only. Never: serves.
//! Changed here: an option of an endpoint, which also is a row of the crate `config`.

use std::collections::BTreeSet;
use std::time::Duration;

use fanwire_tls::ServerTlsOptions;

/// The endpoints of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientEndpoints {
    pub websocket: WebsocketEndpointOptions,
    pub http_stream: StreamOptions,
    pub sse: StreamOptions,
    pub emulation: EmulationOptions,
    pub uni_websocket: UniWebsocketOptions,
    pub uni_sse: UniStreamOptions,
    pub uni_http_stream: UniStreamOptions,
    pub uni_grpc: GrpcListenerOptions,
    /// Header of a trusted proxy that carries the user id; "" = none.
    pub user_id_http_header: String,
    /// Names of headers that event proxies pass on, in lower case. A text that is no such name is left out.
    pub proxied_headers: BTreeSet<String>,
}

/// `websocket.*`, the part that a handshake decides. What the connection obeys is set in the shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebsocketEndpointOptions {
    pub disabled: bool,
    pub handler_prefix: String,
    /// Answer offers of permessage-deflate.
    pub compression: bool,
    /// Answer offers of Apple's NSURLSession too.
    pub compression_apple: bool,
    /// A compressor for each connection that allows it, instead of frames shared between connections.
    pub has_dedicated_compression: bool,
    /// Window of our own messages at most, 9 to 15.
    pub server_max_window_bits: u8,
    /// Messages of clients may refer to earlier ones, at the cost of a window for each connection.
    pub client_context_takeover: bool,
    /// Window of a client that lets the server choose, 9 to 15.
    pub client_max_window_bits: u8,
    /// Decline offers that do not let the server choose.
    pub require_client_max_window_bits: bool,
}

/// `http_stream.*` and `sse.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamOptions {
    pub enabled: bool,
    pub handler_prefix: String,
    /// Bytes; longer → 413.
    pub max_request_body_size: usize,
    /// Compresses bodies for clients that accept it.
    pub compression: bool,
}

/// `emulation.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmulationOptions {
    pub handler_prefix: String,
    /// Bytes; longer → 413.
    pub max_request_body_size: usize,
}

/// `uni_websocket.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniWebsocketOptions {
    pub enabled: bool,
    pub handler_prefix: String,
    /// Answer offers of permessage-deflate.
    pub compression: bool,
    /// Bytes; shorter messages go out uncompressed.
    pub compression_min_size: usize,
    /// 1 (fastest) to 9 (smallest).
    pub compression_level: u8,
    /// Bytes of one incoming message on the wire; longer → close 1009.
    pub message_size_limit: usize,
    /// Bytes of one incoming message after inflating; 0 = ten times `message_size_limit`.
    pub decompressed_message_size_limit: usize,
    /// How long a write may make no progress before the connection is closed.
    pub write_timeout: Duration,
    /// Pushes for one connection that leave together are one message.
    pub join_push_messages: bool,
    /// Connections end without a disconnect push.
    pub disable_disconnect_push: bool,
    /// Connections end without a close frame.
    pub disable_closing_handshake: bool,
}

/// `uni_sse.*` and `uni_http_stream.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniStreamOptions {
    pub enabled: bool,
    pub handler_prefix: String,
    /// Bytes; longer → 413.
    pub max_request_body_size: usize,
    /// Compress bodies for clients that accept gzip or deflate.
    pub compression: bool,
    pub connect_code_to_http_response: ConnectResponseOptions,
}

/// `connect_code_to_http_response.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectResponseOptions {
    /// The response begins when connect is decided; a refused one has a status.
    pub enabled: bool,
    /// Codes without a row get 500.
    pub transforms: Vec<ConnectCodeResponse>,
}

/// `connect_code_to_http_response.transforms[]`
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectCodeResponse {
    /// Code of the error or of the disconnect.
    pub code: u32,
    pub to: StatusAndBody,
}

/// A response.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatusAndBody {
    pub status_code: u16,
    /// "" = the text of the code.
    pub body: String,
}

/// `shed.*`: from which load on new clients get 503.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShedOptions {
    /// Resident bytes of the process; 0 = no limit.
    pub memory_max: u64,
    /// Resident memory in percent of the limit of the cgroup, or of the machine's memory; 0 = no limit.
    pub memory_percent_max: u8,
    /// Mean time of the turns of a shard; zero = no limit.
    pub turn_max: Duration,
}

/// `uni_grpc.*`, and a listener for the server API over gRPC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcListenerOptions {
    pub enabled: bool,
    /// Empty = all addresses.
    pub address: String,
    /// 0 lets the system choose one.
    pub port: u16,
    /// Bytes; 0 = 4 MiB.
    pub max_receive_message_size: usize,
    pub tls: ServerTlsOptions,
}

impl GrpcListenerOptions {
    /// Longest message that it receives, in bytes.
    pub fn message_bytes_max(&self) -> usize {
        match self.max_receive_message_size {
            0 => GRPC_MESSAGE_BYTES_MAX,
            bytes => bytes,
        }
    }
}

/// The limit that gRPC libraries have by default.
const GRPC_MESSAGE_BYTES_MAX: usize = 4 << 20;
