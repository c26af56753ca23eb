//! Options of the node (Centrifugo v6 `client.*`, `channel.*`, `rpc.ping.*`): plain data with its defaults and its checks.
//! In: values from the configuration table → out: the same data, checked by `Options::validate`.
//! May use: regex (to compile, not to match), `fanwire_auth` (to parse keys). Never reads files, environment or a clock.
//! Changed here: defaults and limits; key names, types and help texts live in the server's config table.

mod areas;
mod choice;
mod debug_for;
mod delivery;
mod idempotency;
mod map;
mod namespace;
mod shared_poll;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fanwire_auth::{OptionsError, TokenOptions};
use fanwire_protocol::Disconnect;

pub use areas::AreaOptions;
pub use choice::{CompressionPolicy, DataFormat, RecoveryMode, SubscriptionType};
pub use debug_for::{DebugForOptions, SUBJECTS_MAX};
pub use delivery::{BatchOptions, DeliveryOptions};
pub use idempotency::ClientIdempotency;
pub use map::{ClientKey, MapMode, MapOptions};
pub use namespace::Namespace;
pub use shared_poll::{NamespacePollOptions, SharedPollOptions};

/// All options of a [`Node`](crate). Field names are the Centrifugo v6 key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Name of this node, shown in `info`.
    pub name: String,
    /// Text of `version` in the connect result; never parsed by clients.
    pub version: String,
    /// Interval of the metrics that `info` shows; at least a second.
    pub info_metrics_aggregate_interval: Duration,
    pub client: ClientOptions,
    pub channel: ChannelOptions,
    pub rpc: RpcOptions,
    pub user_status: UserStatusOptions,
    pub shared_poll: SharedPollOptions,
    /// Bytes of the flight recorder, for the newest connections; 0 = nothing is recorded.
    pub recorder_memory_max: usize,
    /// Subjects whose events are logged.
    pub debug_for: DebugForOptions,
}

/// `client.*`: connection life cycle, limits and credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Time between two pings of the server; longer than `pong_timeout`.
    pub ping_interval: Duration,
    /// How long a client may take to answer a ping; then 3012.
    pub pong_timeout: Duration,
    /// How long a connection may stay without a successful connect; then 3502.
    pub stale_close_delay: Duration,
    /// Grace after the expiry of a connection; then 3005.
    pub expired_close_delay: Duration,
    /// Grace after the expiry of a subscription; then unsubscribe 2501.
    pub expired_sub_close_delay: Duration,
    /// Publications in one page of history for clients; 0 = unlimited.
    pub history_max_publication_limit: usize,
    /// Publications recovered at once, with more missed it fails; 0 = unlimited.
    pub recovery_max_publication_limit: usize,
    /// A channel that was silent for so long has its positions checked; zero = never.
    pub channel_position_check_delay: Duration,
    /// Positioned subscribers recover instead of receiving a publication that took longer; zero = they receive it.
    pub channel_position_max_time_lag: Duration,
    /// How often the presence of a connection is renewed, at least a second.
    pub presence_update_interval: Duration,
    /// How long a connection stays present without a renewal; longer than `presence_update_interval`.
    pub presence_ttl: Duration,
    /// Channels per connection, at least 1.
    pub channel_limit: usize,
    /// Calls of backends by rpc that a connection has in flight; 0 and 1: its later commands wait for each.
    pub concurrency: usize,
    /// Outgoing bytes per connection, at least 1; more → 3008.
    pub queue_max_size: usize,
    /// Most connections of a user on this node; 0 = unlimited. A further one is closed with 3504.
    pub user_connection_limit: usize,
    /// Connections of one client address; a further one gets 429.
    pub address_connections: AddressLimit,
    /// Rate limit of commands per connection; above it error 111. Connect, unsubscribe and commands without a reply do not count.
    pub command_rate: Rate,
    /// Refusals with 111 per connection; then 3509.
    pub refusal_rate: Rate,
    /// Put `time` (Unix ms) into the connect result.
    pub connect_include_server_time: bool,
    /// Without a token the user is "" instead of 3501.
    pub allow_anonymous_connect_without_token: bool,
    /// Tokens with an empty user get 3507.
    pub disallow_anonymous_connection_tokens: bool,
    /// Personal channels.
    pub subscribe_to_user_personal_channel: PersonalChannelOptions,
    /// Development: no credentials needed, every permission passes.
    pub insecure: bool,
    /// Reasons of disconnects say the cause, which may name configuration keys: in development mode.
    pub explains_disconnects: bool,
    /// Development: claims of tokens are accepted without a check of the signature.
    pub insecure_skip_token_signature_verify: bool,
    /// Keys and claims of connection tokens, and of subscription tokens without keys of their own.
    pub token: TokenOptions,
    /// Some when `subscription_token.enabled`: a separate key set for subscription tokens.
    pub subscription_token: Option<TokenOptions>,
    /// Disconnects of unidirectional clients for errors of connect; those without a row have a built-in one.
    pub connect_code_to_unidirectional_disconnect: Vec<ConnectCodeTransform>,
}

/// `client.connect_code_to_unidirectional_disconnect.transforms[]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectCodeTransform {
    /// Code of the error.
    pub code: u32,
    pub to: Disconnect,
}

/// `client.subscribe_to_user_personal_channel.*`: a channel of the server for every user, such as `#42`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonalChannelOptions {
    pub enabled: bool,
    /// Namespace of these channels; "" = none.
    pub personal_channel_namespace: String,
    /// A new connection closes the older connections of the user with 3504.
    pub single_connection: bool,
}

/// `channel.*`: syntax of names, and the rules of namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelOptions {
    /// Longest name in bytes, at least 1; longer → 107.
    pub max_length: usize,
    /// Names with this prefix need a subscription token. One character, "" = no such channels.
    pub private_prefix: String,
    /// Ends the namespace in a name. One character, "" = no namespaces in names.
    pub namespace_boundary: String,
    /// Starts the list of users in a name. One character, "" = no such lists.
    pub user_boundary: String,
    /// Between the users of such a list. One character, "" = one user only.
    pub user_separator: String,
    /// How long offset and epoch of a channel are kept after the last publication or reader, where a namespace has no
    /// value;
    /// whole seconds, zero = for ever.
    pub history_meta_ttl: Duration,
    /// Approximate bytes of all histories together; above it publications are evicted.
    pub history_memory_max: usize,
    /// Format of publications where a namespace has none.
    pub publication_data_format: DataFormat,
    /// Rules for names without a namespace; its `name` is not used.
    pub without_namespace: Namespace,
    pub namespaces: Vec<Namespace>,
}

/// A rate: a token bucket that holds `limit` tokens and fills in one `interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// 0 = no limit; at most [`LIMIT_MAX`](Self::LIMIT_MAX).
    pub limit: u32,
    /// Time in which an empty bucket fills; at least a second.
    pub interval: Duration,
}

impl Rate {
    /// Beyond it a nanosecond is too coarse to distinguish rates.
    pub const LIMIT_MAX: u32 = 1_000_000;

    /// Checks the limits; `key` is the prefix of `limit` and `interval`.
    ///
    /// # Errors
    /// The invalid value.
    pub fn check(self, key: &str) -> Result<(), OptionsError> {
        if self.limit > Self::LIMIT_MAX {
            let expected = format!("at most {}", Self::LIMIT_MAX);
            return Err(OptionsError::value(format!("{key}limit"), self.limit, expected));
        }
        if self.interval < Duration::from_secs(1) {
            let given = format!("{:?}", self.interval);
            return Err(OptionsError::value(format!("{key}interval"), given, "at least 1s"));
        }
        Ok(())
    }
}

/// A rate of a tenant on all nodes together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantRate {
    /// 0 = no limit; at most [`Rate::LIMIT_MAX`].
    pub limit: u32,
    /// At least a second.
    pub interval: Duration,
    /// What is above it is counted and not refused.
    pub dry_run: bool,
}

impl TenantRate {
    pub fn rate(self) -> Rate {
        Rate { limit: self.limit, interval: self.interval }
    }
}

/// `limits.*` of a namespace: publish commands in it on all nodes; more → 111.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamespaceLimits {
    /// Those of one user; the anonymous one has no such limit.
    pub user_publish: TenantRate,
    /// Those of all clients.
    pub publish: TenantRate,
}

impl NamespaceLimits {
    /// Whether there is a limit.
    pub fn are_set(&self) -> bool {
        self.user_publish.limit > 0 || self.publish.limit > 0
    }
}

/// `client.limits.address_connections.*`: connections of one client address on all nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressLimit {
    /// Most connections; 0 = no limit.
    pub limit: u32,
    /// What is above it is counted and not refused.
    pub dry_run: bool,
}

/// `rpc.*`: a method that the server answers with an empty result, and the event proxies of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcOptions {
    /// Whether the method exists (`rpc.ping.enabled`).
    pub ping: bool,
    /// Its name (`rpc.ping.method`).
    pub ping_method: String,
    /// The method as which messages of the `send` command reach hooks and proxies. "" = clients may not send.
    pub send_method: String,
    /// Ends the namespace in the name of a method. "" = no namespaces in names.
    pub namespace_boundary: String,
    /// The proxy of methods without a namespace.
    pub without_namespace: ProxyChoice,
    /// The proxies of the others by namespace.
    pub namespaces: BTreeMap<String, ProxyChoice>,
}

/// `user_status.*`: what the server itself records of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserStatusOptions {
    /// Records regularly who is online, and answers the RPC method `update_user_status` of clients.
    pub enabled: bool,
    /// How long a status stays after its last change, at least a second.
    pub expire_interval: Duration,
}

impl Default for UserStatusOptions {
    fn default() -> Self {
        Self { enabled: false, expire_interval: Duration::from_secs(720 * 3600) }
    }
}

/// `*_proxy_enabled` and `*_proxy_name`: the event proxy that decides, if one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyChoice {
    pub enabled: bool,
    pub name: Arc<str>,
}

impl ProxyChoice {
    /// The proxy for those that name none.
    pub const DEFAULT: &'static str = "default";

    /// The name of the proxy; `None` where none decides.
    pub fn get(&self) -> Option<&Arc<str>> {
        self.enabled.then_some(&self.name)
    }
}

/// The way to the proxy that decides about an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyRoute {
    /// Name of the proxy; `None` where none decides.
    pub proxy: Option<Arc<str>>,
    /// The proxy opens a stream of publications for each subscriber.
    pub has_stream: bool,
    /// Publications of a subscriber go up that stream.
    pub is_bidirectional: bool,
}

impl From<&ProxyChoice> for ProxyRoute {
    fn from(choice: &ProxyChoice) -> Self {
        Self { proxy: choice.get().cloned(), ..Self::default() }
    }
}

impl RpcOptions {
    /// Which proxy answers a method; `None` if the namespace in its name is unknown.
    pub fn proxy_of(&self, method: &str) -> Option<&ProxyChoice> {
        let boundary = Some(&*self.namespace_boundary).filter(|boundary| !boundary.is_empty());
        match boundary.and_then(|boundary| method.split_once(boundary)) {
            Some((namespace, _)) => self.namespaces.get(namespace),
            None => Some(&self.without_namespace),
        }
    }
}

impl Default for ProxyChoice {
    fn default() -> Self {
        Self { enabled: false, name: Self::DEFAULT.into() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "fanwire".to_owned(),
            version: concat!(env!("CARGO_PKG_VERSION"), " Fanwire").to_owned(),
            info_metrics_aggregate_interval: Duration::from_secs(60),
            client: ClientOptions::default(),
            channel: ChannelOptions::default(),
            rpc: RpcOptions::default(),
            user_status: UserStatusOptions::default(),
            shared_poll: SharedPollOptions::default(),
            recorder_memory_max: 32 << 20,
            debug_for: DebugForOptions::default(),
        }
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            ping_interval: Duration::from_secs(25),
            pong_timeout: Duration::from_secs(8),
            stale_close_delay: Duration::from_secs(10),
            expired_close_delay: Duration::from_secs(25),
            expired_sub_close_delay: Duration::from_secs(25),
            history_max_publication_limit: 300,
            recovery_max_publication_limit: 300,
            channel_position_check_delay: Duration::from_secs(40),
            channel_position_max_time_lag: Duration::ZERO,
            presence_update_interval: Duration::from_secs(27),
            presence_ttl: Duration::from_secs(60),
            channel_limit: 128,
            concurrency: 0,
            queue_max_size: 1_048_576,
            user_connection_limit: 0,
            address_connections: AddressLimit::default(),
            command_rate: Rate::default(),
            refusal_rate: Rate { limit: 200, interval: Duration::from_secs(10) },
            connect_include_server_time: false,
            allow_anonymous_connect_without_token: false,
            disallow_anonymous_connection_tokens: false,
            subscribe_to_user_personal_channel: PersonalChannelOptions::default(),
            insecure: false,
            explains_disconnects: false,
            insecure_skip_token_signature_verify: false,
            token: TokenOptions::default(),
            subscription_token: None,
            connect_code_to_unidirectional_disconnect: Vec::new(),
        }
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self { limit: 0, interval: Duration::from_secs(1) }
    }
}

impl Default for TenantRate {
    fn default() -> Self {
        let Rate { limit, interval } = Rate::default();
        Self { limit, interval, dry_run: false }
    }
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            max_length: 255,
            private_prefix: "$".to_owned(),
            namespace_boundary: ":".to_owned(),
            user_boundary: "#".to_owned(),
            user_separator: ",".to_owned(),
            history_meta_ttl: Duration::from_secs(720 * 3600),
            history_memory_max: 1 << 30,
            publication_data_format: DataFormat::Unset,
            without_namespace: Namespace::default(),
            namespaces: Vec::new(),
        }
    }
}

impl Default for RpcOptions {
    fn default() -> Self {
        Self {
            ping: false,
            ping_method: "ping".to_owned(),
            send_method: String::new(),
            namespace_boundary: ":".to_owned(),
            without_namespace: ProxyChoice::default(),
            namespaces: BTreeMap::new(),
        }
    }
}

/// Bytes of the reason in a close frame: RFC 6455 §5.5 has 125, of which the code takes two.
pub const REASON_BYTES_MAX: usize = 123;

#[cfg(test)]
mod tests;
