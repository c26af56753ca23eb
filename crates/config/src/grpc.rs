//! Options of the gRPC listeners.
//! In: values of the sections `grpc_api` and `uni_grpc` → out: plain data, and the options of the server API over gRPC.
//! Uses the options of `api`. Never: a listener.
//! Changed here: the form of the options. Their keys and defaults are rows of `keys::grpc`.

use fanwire_api::{ApiOptions, ErrorMode};
use fanwire_auth::Secret;

use crate::{Config, ServerTlsOptions, ServerTlsSection};

/// A listener for gRPC.
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

/// `grpc_api.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcApiOptions {
    pub listener: GrpcListenerOptions,
    /// Empty = everybody may call.
    pub key: Secret,
    pub error_mode: ErrorMode,
    /// Describes the services, without a key.
    pub reflection: bool,
}

impl Config {
    /// TLS of the listeners for gRPC: of the server API, and of unidirectional clients.
    pub fn grpc_tls(&self) -> [Option<ServerTlsSection<'_>>; 2] {
        let sections =
            [("grpc_api.tls", &self.grpc_api.listener), ("uni_grpc.tls", &self.uni_grpc)];
        sections.map(|(key, GrpcListenerOptions { enabled, tls, .. })| {
            (*enabled && tls.enabled).then_some((key, tls))
        })
    }
}

impl GrpcApiOptions {
    /// The options of the API behind it, which has the named keys of `http_api`, too.
    pub fn api(&self, http: &ApiOptions) -> ApiOptions {
        ApiOptions {
            key: self.key.clone(),
            insecure: self.key.is_empty() && http.keys.is_empty(),
            keys: http.keys.clone(),
            error_mode: self.error_mode,
            body_bytes_max: self.listener.message_bytes_max(),
            is_traced: http.is_traced,
            config_reader: http.config_reader.clone(),
            ..ApiOptions::default()
        }
    }
}

/// The limit that gRPC libraries have by default.
const GRPC_MESSAGE_BYTES_MAX: usize = 4 << 20;
