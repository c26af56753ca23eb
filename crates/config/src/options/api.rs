//! `http_api.*` and `grpc_api.*`: the server API over HTTP and over gRPC.
//! In: values of the rows → out: the sections.
//! Uses the options of `api` and `edge`. Never: a listener.
//! Changed here: the fields of the sections, which have the names of their keys. `parts` makes the options of the API of them.

use fanwire_api::{ConfigReader, ErrorMode, NamedKeys};
use fanwire_auth::Secret;
use fanwire_edge::GrpcListenerOptions;
use fanwire_tls::ServerTlsOptions;

/// `http_api.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpApiOptions {
    /// Removes the server API altogether.
    pub disabled: bool,
    /// Leaves it on the port of clients when there is an internal one.
    pub external: bool,
    /// Path prefix of the method names.
    pub handler_prefix: String,
    /// The secret that backends send. While it is empty every request gets 401.
    pub key: Secret,
    /// The secret before the last change, which counts as well; "" = none.
    pub previous_key: Secret,
    /// Unix second after which that one is refused; 0 = never.
    pub previous_key_valid_until: u64,
    /// Further keys, with names and rights.
    pub keys: NamedKeys,
    /// Accepts requests without a key.
    pub insecure: bool,
    /// Part of a response that reports application errors, unless the request selects a mode by header.
    pub error_mode: ErrorMode,
    /// Bytes; longer → 413.
    pub max_request_body_size: usize,
    /// No key: reads the configuration of the process, for the method `node_config`.
    pub config_reader: ConfigReader,
}

/// `grpc_api.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrpcApiOptions {
    pub enabled: bool,
    /// Empty = all addresses.
    pub address: String,
    /// 0 lets the system choose one.
    pub port: u16,
    /// Empty = everybody may call.
    pub key: Secret,
    pub error_mode: ErrorMode,
    /// Describes the services, without a key.
    pub reflection: bool,
    /// Bytes; 0 = 4 MiB.
    pub max_receive_message_size: usize,
    pub tls: ServerTlsOptions,
}

impl GrpcApiOptions {
    /// Its listener.
    pub fn listener(&self) -> GrpcListenerOptions {
        GrpcListenerOptions {
            enabled: self.enabled,
            address: self.address.clone(),
            port: self.port,
            max_receive_message_size: self.max_receive_message_size,
            tls: self.tls.clone(),
        }
    }
}
