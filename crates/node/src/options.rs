//! Options of the node (Centrifugo v6 `client.*`, `channel.*`, `rpc.ping.*`): plain data with its defaults and its checks.
//! In: what the configuration table filled in → out: the same data, proven usable by `Options::validate`.
//! May use: regex (to compile, not to match), `fanwire_auth` (to parse keys). Never reads files, environment or a clock.
//! Defaults and limits are changed here; key names, types and help texts live in the server's config table.

mod choice;
mod namespace;

use std::time::Duration;

use fanwire_auth::{OptionsError, TokenOptions};

pub use choice::{CompressionPolicy, DataFormat, RecoveryMode, SubscriptionType};
pub use namespace::Namespace;

/// Everything a [`Node`](crate) is told at start. Field names are the Centrifugo v6 key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Name of this node, shown in `info`.
    pub name: String,
    /// Text of `version` in the connect result; never parsed by clients.
    pub version: String,
    /// How long the numbers that `info` shows were gathered for; at least a second.
    pub info_metrics_aggregate_interval: Duration,
    pub client: ClientOptions,
    pub channel: ChannelOptions,
    pub rpc: RpcOptions,
}

/// `client.*`: connection life cycle, limits and credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Time between two pings of the server; longer than `pong_timeout`.
    pub ping_interval: Duration,
    /// How long a client may take to answer a ping, after that 3012.
    pub pong_timeout: Duration,
    /// How long a connection may stay without a successful connect, after that 3502.
    pub stale_close_delay: Duration,
    /// Grace after the expiry of a connection, after that 3005.
    pub expired_close_delay: Duration,
    /// Grace after the expiry of a subscription, after that unsubscribe 2501.
    pub expired_sub_close_delay: Duration,
    /// Publications in one page of history for clients; 0 = unlimited.
    pub history_max_publication_limit: usize,
    /// Publications recovered at once, with more missed it fails; 0 = unlimited.
    pub recovery_max_publication_limit: usize,
    /// Positions of a channel that was silent for so long are compared with its stream; zero = never.
    pub channel_position_check_delay: Duration,
    /// Positioned subscribers do not get a publication that was on its way for longer, but recover; zero = they get it.
    pub channel_position_max_time_lag: Duration,
    /// How often the presence of a connection is renewed, at least a second.
    pub presence_update_interval: Duration,
    /// How long a connection stays present without a renewal; longer than `presence_update_interval`.
    pub presence_ttl: Duration,
    /// Channels per connection, at least 1.
    pub channel_limit: usize,
    /// Outgoing bytes per connection, at least 1; more → 3008.
    pub queue_max_size: usize,
    /// Connections per user on this node; 0 = unlimited. More → 3504.
    pub user_connection_limit: usize,
    /// Commands per connection with 111 beyond it; without connect, unsubscribe and what has no reply.
    pub command_rate: Rate,
    /// Refusals with 111 per connection, after that 3509.
    pub refusal_rate: Rate,
    /// Put `time` (Unix ms) into the connect result.
    pub connect_include_server_time: bool,
    /// Without a token the user is "" instead of 3501.
    pub allow_anonymous_connect_without_token: bool,
    /// Tokens with an empty user get 3507.
    pub disallow_anonymous_connection_tokens: bool,
    /// A channel of its own for every user.
    pub subscribe_to_user_personal_channel: PersonalChannelOptions,
    /// Development: no credentials needed, every permission passes.
    pub insecure: bool,
    /// Development: claims of tokens are believed without looking at the signature.
    pub insecure_skip_token_signature_verify: bool,
    /// Keys and claims of connection tokens, and of subscription tokens when those have none of their own.
    pub token: TokenOptions,
    /// Some when `subscription_token.enabled`: a separate key set for subscription tokens.
    pub subscription_token: Option<TokenOptions>,
}

/// `client.subscribe_to_user_personal_channel.*`: a channel of the server for every user, such as `#42`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersonalChannelOptions {
    pub enabled: bool,
    /// Namespace of these channels; "" = none.
    pub personal_channel_namespace: String,
    /// Who connects closes the older connections of the user with 3504.
    pub single_connection: bool,
}

/// `channel.*`: how names are read, and what may be done where.
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
    /// How long offset and epoch of a channel are kept after the last publication or reader, where a namespace does not
    /// say; whole seconds, zero = for ever.
    pub history_meta_ttl: Duration,
    /// Bytes that all histories together take, roughly; beyond it some lose their publications.
    pub history_memory_max: usize,
    /// Format of publications where a namespace does not say.
    pub publication_data_format: DataFormat,
    /// Rules for names without a namespace; its `name` is not used.
    pub without_namespace: Namespace,
    pub namespaces: Vec<Namespace>,
}

/// How often something may happen: a token bucket with room for `limit`, which fills in one `interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// 0 = as often as one likes; at most [`LIMIT_MAX`](Self::LIMIT_MAX).
    pub limit: u32,
    /// At least a second.
    pub interval: Duration,
}

impl Rate {
    /// Beyond it a nanosecond would be too coarse to tell rates apart.
    pub const LIMIT_MAX: u32 = 1_000_000;

    /// Whether it is in its limits; `key` is what stands before `limit` and `interval`.
    ///
    /// # Errors
    /// The value that is not.
    pub(crate) fn check(self, key: &str) -> Result<(), OptionsError> {
        if self.limit > Self::LIMIT_MAX {
            let expected = format!("at most {}", Self::LIMIT_MAX);
            return Err(OptionsError::value(format!("{key}limit"), self.limit, expected));
        }
        if self.interval < Duration::from_secs(1) {
            let found = format!("{:?}", self.interval);
            return Err(OptionsError::value(format!("{key}interval"), found, "at least 1s"));
        }
        Ok(())
    }
}

/// `rpc.ping.*`: an RPC method the server answers itself with an empty result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcOptions {
    /// Whether the method exists (`rpc.ping.enabled`).
    pub ping: bool,
    /// Its name (`rpc.ping.method`).
    pub ping_method: String,
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
            queue_max_size: 1_048_576,
            user_connection_limit: 0,
            command_rate: Rate::default(),
            refusal_rate: Rate { limit: 200, interval: Duration::from_secs(10) },
            connect_include_server_time: false,
            allow_anonymous_connect_without_token: false,
            disallow_anonymous_connection_tokens: false,
            subscribe_to_user_personal_channel: PersonalChannelOptions::default(),
            insecure: false,
            insecure_skip_token_signature_verify: false,
            token: TokenOptions::default(),
            subscription_token: None,
        }
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self { limit: 0, interval: Duration::from_secs(1) }
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
        Self { ping: false, ping_method: "ping".to_owned() }
    }
}

#[cfg(test)]
mod tests;
