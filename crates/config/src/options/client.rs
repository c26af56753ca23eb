//! `client.*`: connections, their limits and credentials.
//! In: values of the rows → out: the section, and the options of the crates that obey it.
//! Uses the options of `auth`, `policy`, `proxy` and `tls`. Never: their checks.
//! Changed here: the fields of the section, which have the names of their keys.

use std::time::Duration;

use fanwire_auth::{ClaimLabel, Secret};
use fanwire_policy::options::{AddressLimit, ConnectCodeTransform, PersonalChannelOptions, Rate};
use fanwire_proxy::ProxyOptions;
use fanwire_tls::TlsOptions;

/// `client.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSection {
    /// Patterns with `*`; empty = only requests without an `Origin` header.
    pub allowed_origins: Vec<String>,
    /// Connections of this server; 0 = unlimited. More get 503.
    pub connection_limit: usize,
    /// New connections per second; 0 = unlimited. More get 503.
    pub connection_rate_limit: usize,
    /// Messages of a connection wait so long for others; zero = until the end of a turn.
    pub write_delay: Duration,
    /// While a shard is busy, publications wait at most so long for others; zero = never.
    pub write_delay_under_load: Duration,
    /// Replies do not wait.
    pub reply_without_queue: bool,
    /// Header of a trusted proxy that carries the user id; "" = none.
    pub user_id_http_header: String,
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
    /// Connections per user on this node; 0 = unlimited. More → 3504.
    pub user_connection_limit: usize,
    pub rate_limit: ClientRateLimits,
    pub limits: ClientLimits,
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
    /// Development: claims of tokens are accepted without a check of the signature.
    pub insecure_skip_token_signature_verify: bool,
    /// Keys and claims of connection tokens, and of subscription tokens without keys of their own.
    pub token: TokenSection,
    /// Keys and claims of subscription tokens, with `enabled`.
    pub subscription_token: TokenSection,
    pub connect_code_to_unidirectional_disconnect: ConnectCodeOptions,
    pub proxy: ClientProxies,
}

/// `client.rate_limit.*`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientRateLimits {
    /// Rate limit of commands per connection; above it error 111. Connect, unsubscribe and commands without a reply do not count.
    pub client_command: Rate,
    /// Refusals with 111 per connection; then 3509.
    pub refusal: Rate,
}

/// `client.limits.*`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections of one client address on all nodes; more get 429.
    pub address_connections: AddressLimit,
}

/// `client.token.*` and `client.subscription_token.*`; "" = not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenSection {
    /// `client.subscription_token` alone: subscription tokens have keys of their own.
    pub enabled: bool,
    /// Shared secret of HS256, HS384 and HS512.
    pub hmac_secret_key: Secret,
    /// Secret before the last rotation, still believed.
    pub hmac_previous_secret_key: Secret,
    /// The last Unix second in which the previous secret is believed. 0 = no end.
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
    /// `client.token` alone: labels from other claims of connection tokens; they replace those of the claim `labels`.
    pub labels_from_claim: Vec<ClaimLabel>,
    pub jwks: JwksOptions,
}

/// `jwks.*` of a section of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwksOptions {
    /// TLS of connections to `jwks_public_endpoint`.
    pub tls: TlsOptions,
}

/// `client.connect_code_to_unidirectional_disconnect.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectCodeOptions {
    /// Obeys the transforms.
    pub enabled: bool,
    /// Disconnects of unidirectional clients for errors of connect; those without a row have a built-in one.
    pub transforms: Vec<ConnectCodeTransform>,
}

/// `client.proxy.*`: the event proxies of connections; `None` unless `enabled`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientProxies {
    pub connect: Option<ProxyOptions>,
    pub refresh: Option<ProxyOptions>,
}

impl From<&ClientSection> for fanwire_policy::options::ClientOptions {
    fn from(client: &ClientSection) -> Self {
        let subscription_token = &client.subscription_token;
        let codes = &client.connect_code_to_unidirectional_disconnect;
        Self {
            ping_interval: client.ping_interval,
            pong_timeout: client.pong_timeout,
            stale_close_delay: client.stale_close_delay,
            expired_close_delay: client.expired_close_delay,
            expired_sub_close_delay: client.expired_sub_close_delay,
            history_max_publication_limit: client.history_max_publication_limit,
            recovery_max_publication_limit: client.recovery_max_publication_limit,
            channel_position_check_delay: client.channel_position_check_delay,
            channel_position_max_time_lag: client.channel_position_max_time_lag,
            presence_update_interval: client.presence_update_interval,
            presence_ttl: client.presence_ttl,
            channel_limit: client.channel_limit,
            concurrency: client.concurrency,
            queue_max_size: client.queue_max_size,
            user_connection_limit: client.user_connection_limit,
            connect_include_server_time: client.connect_include_server_time,
            allow_anonymous_connect_without_token: client.allow_anonymous_connect_without_token,
            disallow_anonymous_connection_tokens: client.disallow_anonymous_connection_tokens,
            subscribe_to_user_personal_channel: client.subscribe_to_user_personal_channel.clone(),
            insecure: client.insecure,
            insecure_skip_token_signature_verify: client.insecure_skip_token_signature_verify,
            address_connections: client.limits.address_connections,
            command_rate: client.rate_limit.client_command,
            refusal_rate: client.rate_limit.refusal,
            token: (&client.token).into(),
            subscription_token: subscription_token.enabled.then(|| subscription_token.into()),
            connect_code_to_unidirectional_disconnect: if codes.enabled {
                codes.transforms.clone()
            } else {
                Vec::new()
            },
            explains_disconnects: false,
        }
    }
}

impl From<&TokenSection> for fanwire_auth::TokenOptions {
    fn from(token: &TokenSection) -> Self {
        Self {
            hmac_secret_key: token.hmac_secret_key.clone(),
            hmac_previous_secret_key: token.hmac_previous_secret_key.clone(),
            hmac_previous_secret_key_valid_until: token.hmac_previous_secret_key_valid_until,
            rsa_public_key: token.rsa_public_key.clone(),
            ecdsa_public_key: token.ecdsa_public_key.clone(),
            jwks_public_endpoint: token.jwks_public_endpoint.clone(),
            insecure_skip_jwks_endpoint_safety_check: token
                .insecure_skip_jwks_endpoint_safety_check,
            audience: token.audience.clone(),
            audience_regex: token.audience_regex.clone(),
            issuer: token.issuer.clone(),
            issuer_regex: token.issuer_regex.clone(),
            user_id_claim: token.user_id_claim.clone(),
            labels_from_claim: token.labels_from_claim.clone(),
        }
    }
}
