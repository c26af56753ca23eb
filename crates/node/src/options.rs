//! Options of the node (Centrifugo v6 `client.*`, `channel.*`, `rpc.ping.*`): plain data with its defaults and its checks.
//! In: what the configuration table filled in → out: the same data, proven usable by `Options::validate`.
//! May use: regex (to compile, not to match), `token` (to parse keys). Never reads files, environment or a clock.
//! Defaults and limits are changed here; key names, types and help texts live in the server's config table.

pub(crate) mod check;
mod error;

use std::time::Duration;

use crate::broker::Retention;

pub use error::OptionsError;

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

/// `client.token.*` or `client.subscription_token.*`; "" = not set. `Debug` hides the secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TokenOptions {
    /// Shared secret of HS256, HS384 and HS512.
    pub hmac_secret_key: String,
    /// Secret before the last rotation, still believed.
    pub hmac_previous_secret_key: String,
    /// Unix seconds; from then on the previous secret is refused. 0 = no end.
    pub hmac_previous_secret_key_valid_until: u64,
    /// PEM text of RS256, RS384 and RS512, 2048 to 8192 bits.
    pub rsa_public_key: String,
    /// PEM text of ES256 (P-256), ES384 (P-384) or ES512 (P-521).
    pub ecdsa_public_key: String,
    /// Address of a document with public keys (RFC 7517), for tokens that name theirs (`kid`). Variables `{{name}}` are
    /// filled by named groups of `issuer_regex` and `audience_regex`.
    pub jwks_public_endpoint: String,
    /// Allows groups that take any value to choose the address.
    pub insecure_skip_jwks_endpoint_safety_check: bool,
    /// `aud` must contain exactly this.
    pub audience: String,
    /// One entry of `aud` must match this.
    pub audience_regex: String,
    /// `iss` must be exactly this.
    pub issuer: String,
    /// `iss` must match this.
    pub issuer_regex: String,
    /// Claim that carries the user id instead of `sub`; letters and `_` only.
    pub user_id_claim: String,
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

/// Rules for the channels of one namespace (`channel.namespaces[NAME].*`), everything off by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// `^[-a-zA-Z0-9_.]{2,}$`, unique.
    pub name: String,
    /// Pattern for the part of the name after the namespace; "" = any ASCII text.
    pub channel_regex: String,
    pub publication_data_format: DataFormat,
    /// Every authenticated client may subscribe.
    pub allow_subscribe_for_client: bool,
    /// Extends the above to user "".
    pub allow_subscribe_for_anonymous: bool,
    /// Every authenticated client may publish.
    pub allow_publish_for_client: bool,
    /// Every authenticated client that is subscribed may publish.
    pub allow_publish_for_subscriber: bool,
    /// Extends the two above to user "".
    pub allow_publish_for_anonymous: bool,
    /// A client that publishes does not get its own publication, on the connection that published it.
    pub exclude_publisher: bool,
    /// Publish commands of one connection in this namespace, allowed or not; more → 111.
    pub publish_rate: Rate,
    /// Subscribe commands of one connection in this namespace, allowed or not; more → 111.
    pub subscribe_rate: Rate,
    /// Every authenticated client may read history.
    pub allow_history_for_client: bool,
    /// Every authenticated client that is subscribed may read history.
    pub allow_history_for_subscriber: bool,
    /// Extends the two above to user "".
    pub allow_history_for_anonymous: bool,
    /// Subscribers are present in their channel, for others to see.
    pub presence: bool,
    /// Joins and leaves of subscribers are announced to those that hear of them.
    pub join_leave: bool,
    /// Every subscriber hears of joins and leaves; without it those that ask and may see presence.
    pub force_push_join_leave: bool,
    /// Every authenticated client may see who is present.
    pub allow_presence_for_client: bool,
    /// Every authenticated client that is subscribed may see who is present.
    pub allow_presence_for_subscriber: bool,
    /// Extends the two above to user "".
    pub allow_presence_for_anonymous: bool,
    /// Publications kept per channel; 0 = no history, and then `history_ttl` is zero, too.
    pub history_size: usize,
    /// How long publications are kept after the last one, in whole seconds.
    pub history_ttl: Duration,
    /// Every subscription is recoverable; needs history.
    pub force_recovery: bool,
    /// Subscriptions are recoverable when the client asks.
    pub allow_recovery: bool,
    /// Every subscription is positioned.
    pub force_positioning: bool,
    /// Subscriptions are positioned when the client asks.
    pub allow_positioning: bool,
    /// What recovery brings.
    pub force_recovery_mode: RecoveryMode,
    /// In cache mode: recovers without being asked.
    pub auto_cache_recover: bool,
    /// How long offset and epoch are kept, at least `history_ttl`; zero = as [`ChannelOptions::history_meta_ttl`] says.
    pub history_meta_ttl: Duration,
    /// Clients may choose publications by their tags.
    pub allow_tags_filter: bool,
    /// Kinds of deltas a subscriber may agree to; only [`FOSSIL`](Self::FOSSIL) is known.
    pub allowed_delta_types: Vec<String>,
    /// Every publication may reach those who agreed as a delta; without it those published with `delta`.
    pub delta_publish: bool,
    /// Deltas for subscriptions without positions too: shards keep the latest publication for them.
    pub keep_latest_publication: bool,
    /// Read the list of users after `user_boundary`.
    pub allow_user_limited_channels: bool,
    /// How publications are compressed; the node only keeps it for its shell.
    pub compression: CompressionPolicy,
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
}

/// How the publications of a namespace are compressed for clients that can take it (`compression`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CompressionPolicy {
    /// "": `Context`, except where clients may publish that may not read; see [`Namespace::compression_policy`].
    #[default]
    Unset,
    /// Each publication against the ones before it in its channel.
    Context,
    /// Each publication by itself.
    Standalone,
    /// Not at all.
    Off,
}

impl CompressionPolicy {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 4] = ["", "context", "standalone", "off"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" => Some(Self::Unset),
            "context" => Some(Self::Context),
            "standalone" => Some(Self::Standalone),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

impl Namespace {
    /// The kind of deltas that is known (protocol §11).
    pub const FOSSIL: &'static str = "fossil";

    /// Whether subscribers may agree to deltas of this kind.
    pub fn allows_delta(&self, kind: &str) -> bool {
        self.allowed_delta_types.iter().any(|allowed| allowed == kind)
    }

    /// How long publications are kept. Complete in a namespace from [`crate::channel::Channels::resolve`].
    pub fn retention(&self) -> Retention {
        let (size, ttl) = (self.history_size, self.history_ttl);
        Retention { size, ttl, meta_ttl: self.history_meta_ttl }
    }

    /// The policy in force; never `Unset`.
    ///
    /// Who publishes into a channel and watches the sizes of somebody else's compressed publications can test guesses
    /// about the publications before his own (CRIME). Whoever may read the channel learns nothing that way, so context is
    /// the default wherever publishing clients may read too, and where only the server API publishes.
    ///
    /// `is_private` is for channels with `channel.private_prefix`, which nobody reads without a token.
    pub fn compression_policy(&self, is_private: bool) -> CompressionPolicy {
        let some_may_not_read = is_private
            || self.allow_user_limited_channels
            || !self.allow_subscribe_for_client
            || self.allow_publish_for_anonymous && !self.allow_subscribe_for_anonymous;
        let blind_publishers = self.allow_publish_for_client && some_may_not_read;
        match self.compression {
            CompressionPolicy::Unset if blind_publishers => CompressionPolicy::Standalone,
            CompressionPolicy::Unset => CompressionPolicy::Context,
            set => set,
        }
    }
}

/// What a subscriber that recovers is given (`force_recovery_mode`, protocol §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecoveryMode {
    /// "" or "stream": every publication it missed.
    #[default]
    Stream,
    /// The newest publication.
    Cache,
}

impl RecoveryMode {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 3] = ["", "stream", "cache"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" | "stream" => Some(Self::Stream),
            "cache" => Some(Self::Cache),
            _ => None,
        }
    }
}

/// What the data of a publication must be (`publication_data_format`); violations get error 107.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataFormat {
    /// "": as in `channel.publication_data_format`; there it demands only data that is not empty.
    #[default]
    Unset,
    /// One JSON value.
    Json,
    /// One JSON object.
    JsonObject,
    /// Any bytes, none included.
    Binary,
}

impl DataFormat {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 4] = ["", "json", "json_object", "binary"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" => Some(Self::Unset),
            "json" => Some(Self::Json),
            "json_object" => Some(Self::JsonObject),
            "binary" => Some(Self::Binary),
            _ => None,
        }
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

impl Options {
    /// Checks everything that types cannot: limits, names, patterns and keys.
    ///
    /// # Errors
    /// The first wrong value, with its key and what would be right. Secrets are never part of the error.
    pub fn validate(&self) -> Result<(), OptionsError> {
        check::client(&self.client)?;
        check::channel(&self.channel)?;
        check::personal_channel(&self.client.subscribe_to_user_personal_channel, &self.channel)?;
        check::rpc(&self.rpc)
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

impl std::fmt::Debug for TokenOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hidden = |secret: &str| if secret.is_empty() { "" } else { "[hidden]" };
        f.debug_struct("TokenOptions")
            .field("hmac_secret_key", &hidden(&self.hmac_secret_key))
            .field("hmac_previous_secret_key", &hidden(&self.hmac_previous_secret_key))
            .field(
                "hmac_previous_secret_key_valid_until",
                &self.hmac_previous_secret_key_valid_until,
            )
            .field("rsa_public_key", &self.rsa_public_key)
            .field("ecdsa_public_key", &self.ecdsa_public_key)
            .field("audience", &self.audience)
            .field("audience_regex", &self.audience_regex)
            .field("issuer", &self.issuer)
            .field("issuer_regex", &self.issuer_regex)
            .field("user_id_claim", &self.user_id_claim)
            .finish()
    }
}

#[cfg(test)]
mod tests;
