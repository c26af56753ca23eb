//! The options of the server API: key, error mode, paths and limits.
//! In: values of the configuration section `http_api`. Out: plain data for `Api` and `http`.
//! Uses `Secret` of `auth`; never reads files or the environment.
//! Changed here: a default; its key, documentation and parsing live in `config`.

use std::collections::BTreeMap;

use fanwire_auth::Secret;
use fanwire_node::options::Rate;

use crate::config_report::ConfigReader;

/// Default limit of a request body, in bytes.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Options of the server API; the names follow the keys under `http_api`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiOptions {
    /// The secret that backends send. While it is empty every request gets 401.
    pub key: Secret,
    /// The secret before the last change, which counts as well; "" = none.
    pub previous_key: Secret,
    /// Unix second after which that one is refused; 0 = never.
    pub previous_key_valid_until: u64,
    /// Further keys, with names and rights.
    pub keys: NamedKeys,
    /// Accepts requests without a key. For networks with another access control.
    pub insecure: bool,
    /// Part of a response that reports application errors, body or status, unless the request selects a mode by header.
    pub error_mode: ErrorMode,
    /// The path prefix of the method names, for example `/api`; a missing leading slash is added.
    pub handler_prefix: String,
    /// Maximum request body in bytes; a longer one gets HTTP 413 and is not read to its end.
    pub body_bytes_max: usize,
    /// Calls are spans of traces.
    pub is_traced: bool,
    /// Messages of consumers are spans of traces.
    pub is_consuming_traced: bool,
    /// Reads the configuration of the process, for `node_config`.
    pub config_reader: ConfigReader,
}

/// A key with a name (`http_api.keys[NAME]`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiKeyOptions {
    pub key: Secret,
    /// Names of methods; empty = all.
    pub methods: Vec<String>,
    /// Names of namespaces, "" for channels without one; empty = all.
    pub namespaces: Vec<String>,
    /// Commands per interval; more get 111.
    pub rate: Rate,
}

/// Keys by name.
pub type NamedKeys = BTreeMap<String, ApiKeyOptions>;

/// Name of `http_api.key`, `http_api.previous_key` and `grpc_api.key`.
pub const DEFAULT_KEY: &str = "default";

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            key: Secret::default(),
            previous_key: Secret::default(),
            previous_key_valid_until: 0,
            keys: NamedKeys::new(),
            insecure: false,
            error_mode: ErrorMode::Body,
            handler_prefix: "/api".to_owned(),
            body_bytes_max: BODY_BYTES_MAX,
            is_traced: false,
            is_consuming_traced: false,
            config_reader: ConfigReader::default(),
        }
    }
}

/// Part of a response that reports an application error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorMode {
    /// HTTP 200 with `{"error":{…}}`, as client libraries expect.
    #[default]
    Body,
    /// The HTTP status of the error, with the error object as the body.
    Transport,
}
