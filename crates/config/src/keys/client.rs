//! Rows of `client.*`, `rpc.*`, `user_status.*` and `shared_poll.*` but for sections of proxies: connections, their credentials and limits.
//! In: nothing → out: `CLIENT`, rows that set fields of `Config`.
//! Uses the kinds of `keys`. Never: what a channel allows (`keys::channel`).
//! Change a default, a limit or a sentence here; the effects live in `fanwire_policy` and `fanwire_node`.

use std::time::Duration;

use fanwire_auth::ClaimLabel;
use fanwire_policy::options::ConnectCodeTransform;
use fanwire_proxy::ProxyOptions;

use super::{
    COUNT, COUNT_FROM_1, DAY, DELAY, LIST, RATE_INTERVAL, RATE_LIMIT, SECRET, SWITCH, TEXT,
    duration, integer, memory,
};
use crate::key::{FromValue, Kind, Value, rows};
use crate::options::Config;
use crate::transforms::{self, Transforms};

rows! { CLIENT: Config;
    "client.allowed_origins", LIST, "" => [client.allowed_origins],
        "Origins of web pages that may connect, with `*` as wildcard; empty lets in only requests without Origin.";
    "client.ping_interval", duration(Duration::from_secs(1), DAY), "25s" => [client.ping_interval],
        "Time between pings of the server.";
    "client.pong_timeout", duration(Duration::from_millis(1), DAY), "8s" => [client.pong_timeout],
        "Time a client has to answer a ping; must be shorter than client.ping_interval.";
    "client.stale_close_delay", duration(Duration::from_millis(1), DAY), "10s" => [client.stale_close_delay],
        "Time a new connection has to send its connect command.";
    "client.expired_close_delay", DELAY, "25s" => [client.expired_close_delay],
        "Time an expired connection has to be refreshed.";
    "client.expired_sub_close_delay", DELAY, "25s" => [client.expired_sub_close_delay],
        "Time an expired subscription has to be refreshed.";
    "client.history_max_publication_limit", COUNT, "300" => [client.history_max_publication_limit],
        "Most publications of one history page for a client, 0 for no limit.";
    "client.recovery_max_publication_limit", COUNT, "300" => [client.recovery_max_publication_limit],
        "Most publications of one recovery, 0 for no limit; a client that missed more gets `recovered: false`.";
    "client.channel_position_check_delay", DELAY, "40s" => [client.channel_position_check_delay],
        "Silence of a channel after which the positions of its subscribers are compared with its history; 0s for never.";
    "client.channel_position_max_time_lag", DELAY, "0s" => [client.channel_position_max_time_lag],
        "How long a publication may be on its way from one server to another, by their clocks; beyond it subscribers with positions recover instead, 0s for no limit.";
    "client.presence_update_interval", duration(Duration::from_secs(1), DAY), "27s" => [client.presence_update_interval],
        "How often the presence of a connection is renewed.";
    "client.presence_ttl", duration(Duration::from_secs(1), DAY), "60s" => [client.presence_ttl],
        "Fanwire only: how long a connection stays present without a renewal; must be longer than client.presence_update_interval.";
    "client.channel_limit", COUNT_FROM_1, "128" => [client.channel_limit],
        "Most channels of one connection.";
    "client.concurrency", COUNT, "0" => [client.concurrency],
        "Calls by rpc that a connection may have in flight at a backend or a hook, whose replies then come as they are made; with 0 or 1 its later commands wait for each.";
    "client.queue_max_size", COUNT_FROM_1, "1048576" => [client.queue_max_size],
        "Most bytes that wait for one slow connection, besides one larger message on its way; more close it with 3008.";
    "client.write_delay", duration(Duration::ZERO, Duration::from_secs(1)), "0s" => [client.write_delay],
        "How long messages of a connection wait for others, so that one system call and one packet carry several; 0s writes at the end of a turn.";
    "client.write_delay_under_load", duration(Duration::ZERO, Duration::from_secs(1)), "1ms" => [client.write_delay_under_load],
        "Fanwire only: the longest time that a publication waits for others of its connection while its shard is busy; a tenth of the shard's longest turn if that is shorter; none if client.write_delay is set; 0s for never.";
    "client.reply_without_queue", SWITCH, "false" => [client.reply_without_queue],
        "Writes replies to commands, and what waits before them, without client.write_delay.";
    "client.connection_limit", COUNT, "0" => [client.connection_limit],
        "Most connections of this server, 0 for no limit; further ones get 503.";
    "client.user_connection_limit", COUNT, "0" => [client.user_connection_limit],
        "Most connections of one user to this server, 0 for no limit; further ones get 3504.";
    "client.limits.address_connections.limit", RATE_LIMIT, "0" => [client.limits.address_connections.limit],
        "Fanwire only: most connections of one client address to all nodes, 0 for no limit; further ones get 429, and of IPv6 a network of 64 bits counts as one address.";
    "client.limits.address_connections.dry_run", SWITCH, "false" => [client.limits.address_connections.dry_run],
        "Fanwire only: connections beyond that limit are counted in metrics, and accepted.";
    "client.connection_rate_limit", COUNT, "0" => [client.connection_rate_limit],
        "Most new connections per second, 0 for no limit; further ones get 503.";
    "client.rate_limit.client_command.limit", RATE_LIMIT, "0" => [client.rate_limit.client_command.limit],
        "Fanwire only: most commands of one connection in an interval, 0 for no limit; further ones get 111, except unsubscribe.";
    "client.rate_limit.client_command.interval", RATE_INTERVAL, "1s" => [client.rate_limit.client_command.interval],
        "Fanwire only: that interval; the limit comes back evenly in it.";
    "client.rate_limit.refusal.limit", RATE_LIMIT, "200" => [client.rate_limit.refusal.limit],
        "Fanwire only: most refusals with 111 of one connection in an interval, 0 for no limit; one more ends it with 3509.";
    "client.rate_limit.refusal.interval", RATE_INTERVAL, "10s" => [client.rate_limit.refusal.interval],
        "Fanwire only: that interval.";
    "client.connect_include_server_time", SWITCH, "false" => [client.connect_include_server_time],
        "Adds the server's time to the answer to connect.";
    "client.allow_anonymous_connect_without_token", SWITCH, "false" => [client.allow_anonymous_connect_without_token],
        "Lets clients connect without a token, as the empty user.";
    "client.disallow_anonymous_connection_tokens", SWITCH, "false" => [client.disallow_anonymous_connection_tokens],
        "Refuses tokens with an empty user.";
    "client.user_id_http_header", TEXT, "" => [client.user_id_http_header],
        "Header in which a trusted proxy, which must replace what clients send, passes the user id; such connections need no token.";
    "client.subscribe_to_user_personal_channel.enabled", SWITCH, "false" => [client.subscribe_to_user_personal_channel.enabled],
        "Subscribes every connection of a user to the channel of that user, such as `#42`.";
    "client.subscribe_to_user_personal_channel.personal_channel_namespace", TEXT, "" => [client.subscribe_to_user_personal_channel.personal_channel_namespace],
        "Namespace of personal channels, as in `news:#42`; empty for none.";
    "client.subscribe_to_user_personal_channel.single_connection", SWITCH, "false" => [client.subscribe_to_user_personal_channel.single_connection],
        "With personal channels, a new connection of a user closes the older ones with 3504.";
    "client.insecure", SWITCH, "false" => [client.insecure],
        "Development only: no credentials are asked and every channel permission is given.";
    "client.insecure_skip_token_signature_verify", SWITCH, "false" => [client.insecure_skip_token_signature_verify],
        "Development only: believes tokens without checking their signature.";
    "client.token.hmac_secret_key", SECRET, "" => [client.token.hmac_secret_key],
        "Secret of tokens with HS256, HS384 or HS512.";
    "client.token.hmac_previous_secret_key", SECRET, "" => [client.token.hmac_previous_secret_key],
        "Secret before the last change, accepted as well.";
    "client.token.hmac_previous_secret_key_valid_until", integer(0, u64::MAX), "0" => [client.token.hmac_previous_secret_key_valid_until],
        "Unix second after which the previous secret is refused; 0 for never.";
    "client.token.rsa_public_key", TEXT, "" => [client.token.rsa_public_key],
        "Public key in PEM of tokens with RS256, RS384 or RS512.";
    "client.token.ecdsa_public_key", TEXT, "" => [client.token.ecdsa_public_key],
        "Public key in PEM of tokens with ES256, ES384 or ES512.";
    "client.token.jwks_public_endpoint", TEXT, "" => [client.token.jwks_public_endpoint],
        "Address of a document with public keys (JWKS) of tokens with RS256 to RS512, ES256 to ES512 or EdDSA that name their key (kid); {{name}} stands for a named group of issuer_regex or audience_regex.";
    "client.token.insecure_skip_jwks_endpoint_safety_check", SWITCH, "false" => [client.token.insecure_skip_jwks_endpoint_safety_check],
        "Allows groups in that address that do not list the values they take.";
    "client.token.jwks.tls.enabled", SWITCH, "false" => [client.token.jwks.tls.enabled],
        "Obeys the keys below for connections to the JWKS endpoint.";
    "client.token.jwks.tls.server_ca_pem", TEXT, "" => [client.token.jwks.tls.server_ca_pem],
        "Authorities that may have signed the endpoint's certificate, as PEM, base64 of it, or a file; empty means those of the system.";
    "client.token.jwks.tls.cert_pem", TEXT, "" => [client.token.jwks.tls.cert_pem],
        "Certificate to show to the JWKS endpoint, as PEM, base64 of it, or a file.";
    "client.token.jwks.tls.key_pem", SECRET, "" => [client.token.jwks.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "client.token.jwks.tls.server_name", TEXT, "" => [client.token.jwks.tls.server_name],
        "Name that the endpoint's certificate must have; empty means that of the address.";
    "client.token.jwks.tls.insecure_skip_verify", SWITCH, "false" => [client.token.jwks.tls.insecure_skip_verify],
        "Development only: believes any certificate of the JWKS endpoint.";
    "client.token.audience", TEXT, "" => [client.token.audience],
        "Audience (aud) that tokens must name.";
    "client.token.audience_regex", TEXT, "" => [client.token.audience_regex],
        "Regular expression that the audience (aud) of tokens must match.";
    "client.token.issuer", TEXT, "" => [client.token.issuer],
        "Issuer (iss) that tokens must name.";
    "client.token.issuer_regex", TEXT, "" => [client.token.issuer_regex],
        "Regular expression that the issuer (iss) of tokens must match.";
    "client.token.user_id_claim", TEXT, "" => [client.token.user_id_claim],
        "Claim that holds the user id instead of sub.";
    "client.token.labels_from_claim", Kind::Objects, "" => [client.token.labels_from_claim = claim_labels],
        "Labels of connections from claims of their tokens: rows with key (name of the label) and value (path of the claim, as in roles.0).";
    "client.subscription_token.hmac_secret_key", SECRET, "" => [client.subscription_token.hmac_secret_key],
        "Secret of subscription tokens with HS256, HS384 or HS512.";
    "client.subscription_token.hmac_previous_secret_key", SECRET, "" => [client.subscription_token.hmac_previous_secret_key],
        "Secret of subscription tokens before the last change, accepted as well.";
    "client.subscription_token.hmac_previous_secret_key_valid_until", integer(0, u64::MAX), "0" => [client.subscription_token.hmac_previous_secret_key_valid_until],
        "Unix second after which that previous secret is refused; 0 for never.";
    "client.subscription_token.rsa_public_key", TEXT, "" => [client.subscription_token.rsa_public_key],
        "Public key in PEM of subscription tokens with RS256, RS384 or RS512.";
    "client.subscription_token.ecdsa_public_key", TEXT, "" => [client.subscription_token.ecdsa_public_key],
        "Public key in PEM of subscription tokens with ES256, ES384 or ES512.";
    "client.subscription_token.jwks_public_endpoint", TEXT, "" => [client.subscription_token.jwks_public_endpoint],
        "Address of a document with public keys (JWKS) of subscription tokens with RS256 to RS512, ES256 to ES512 or EdDSA that name their key (kid); {{name}} stands for a named group of issuer_regex or audience_regex.";
    "client.subscription_token.insecure_skip_jwks_endpoint_safety_check", SWITCH, "false" => [client.subscription_token.insecure_skip_jwks_endpoint_safety_check],
        "Allows groups in that address that do not list the values they take.";
    "client.subscription_token.jwks.tls.enabled", SWITCH, "false" => [client.subscription_token.jwks.tls.enabled],
        "Obeys the keys below for connections to the JWKS endpoint.";
    "client.subscription_token.jwks.tls.server_ca_pem", TEXT, "" => [client.subscription_token.jwks.tls.server_ca_pem],
        "Authorities that may have signed the endpoint's certificate, as PEM, base64 of it, or a file; empty means those of the system.";
    "client.subscription_token.jwks.tls.cert_pem", TEXT, "" => [client.subscription_token.jwks.tls.cert_pem],
        "Certificate to show to the JWKS endpoint, as PEM, base64 of it, or a file.";
    "client.subscription_token.jwks.tls.key_pem", SECRET, "" => [client.subscription_token.jwks.tls.key_pem],
        "Private key of that certificate, as PEM, base64 of it, or a file.";
    "client.subscription_token.jwks.tls.server_name", TEXT, "" => [client.subscription_token.jwks.tls.server_name],
        "Name that the endpoint's certificate must have; empty means that of the address.";
    "client.subscription_token.jwks.tls.insecure_skip_verify", SWITCH, "false" => [client.subscription_token.jwks.tls.insecure_skip_verify],
        "Development only: believes any certificate of the JWKS endpoint.";
    "client.subscription_token.audience", TEXT, "" => [client.subscription_token.audience],
        "Audience (aud) that subscription tokens must name.";
    "client.subscription_token.audience_regex", TEXT, "" => [client.subscription_token.audience_regex],
        "Regular expression that the audience (aud) of subscription tokens must match.";
    "client.subscription_token.issuer", TEXT, "" => [client.subscription_token.issuer],
        "Issuer (iss) that subscription tokens must name.";
    "client.subscription_token.issuer_regex", TEXT, "" => [client.subscription_token.issuer_regex],
        "Regular expression that the issuer (iss) of subscription tokens must match.";
    "client.subscription_token.user_id_claim", TEXT, "" => [client.subscription_token.user_id_claim],
        "Claim of subscription tokens that holds the user id instead of sub.";
    "client.subscription_token.enabled", SWITCH, "false" => [client.subscription_token.enabled],
        "Checks subscription tokens with the keys of this section instead of those of client.token.";
    "client.connect_code_to_unidirectional_disconnect.transforms", DISCONNECTS, "" => [client.connect_code_to_unidirectional_disconnect.transforms = disconnects],
        "Disconnects of unidirectional clients by codes of errors of connect; others are 3005 for 109 and 110, 3013 for 111, 3507 for 103, and 3004.";
    "client.connect_code_to_unidirectional_disconnect.enabled", SWITCH, "false" => [client.connect_code_to_unidirectional_disconnect.enabled],
        "Obeys these transforms.";
    "client.proxy.connect.enabled", SWITCH, "false" => [client.proxy.connect = switched],
        "Asks the backend about clients that connect without a token.";
    "client.proxy.refresh.enabled", SWITCH, "false" => [client.proxy.refresh = switched],
        "Asks the backend before a connection expires; clients bring no new token then.";
    "rpc.namespace_boundary", TEXT, ":" => [rpc.namespace_boundary],
        "Character that ends the namespace in the name of an RPC method; empty for no namespaces.";
    "rpc.ping.enabled", SWITCH, "false" => [rpc.ping.enabled],
        "Answers an RPC method by itself, so that clients can measure round trips.";
    "rpc.ping.method", TEXT, "ping" => [rpc.ping.method],
        "Name of that RPC method.";
    "rpc.send_method", TEXT, "" => [rpc.send_method],
        "Fanwire only: name of the RPC method as which the backend gets messages that clients send without a reply; empty refuses them.";
    "user_status.enabled", SWITCH, "false" => [user_status.enabled],
        "Records regularly which users are online, and answers the RPC method update_user_status of clients.";
    "user_status.expire_interval", duration(Duration::from_secs(1), Duration::from_secs(87_600 * 3600)), "720h" => [user_status.expire_interval],
        "How long the status of a user is kept after its last change.";
    "shared_poll.hmac_secret_key", SECRET, "" => [shared_poll.hmac_secret_key],
        "Secret with which the backend signs the keys that a client may track; required where a namespace has subscription_type shared_poll.";
    "shared_poll.hmac_previous_secret_key", SECRET, "" => [shared_poll.hmac_previous_secret_key],
        "Secret before the last change, accepted as well.";
    "shared_poll.hmac_previous_secret_key_valid_until", integer(0, u64::MAX), "0" => [shared_poll.hmac_previous_secret_key_valid_until],
        "Unix second; signatures that were issued later may not be of the previous secret; 0 for no limit.";
    "shared_poll.concurrency_limit", integer(0, 100_000), "64" => [shared_poll.concurrency_limit],
        "Most calls of backends for shared polls at a time; 0 for the default.";
    "shared_poll.values_memory_max", integer(0, u64::MAX), "268435456" => [shared_poll.values_memory_max = memory],
        "Fanwire only: bytes of memory for the newest values of all shared polls; beyond it a value is polled again for a client that tracks its key later.";
}

const DISCONNECTS: Kind = Kind::Transforms(Transforms::Disconnects);

/// A field that a row lacks is "", which the check of the options reports.
fn claim_labels(value: Value) -> Vec<ClaimLabel> {
    let rows = serde_json::Value::from_value(value);
    let text = |row: &serde_json::Value, key| row[key].as_str().unwrap_or_default().to_owned();
    let label = |row| ClaimLabel { key: text(row, "key"), path: text(row, "value") };
    rows.as_array().into_iter().flatten().map(label).collect()
}

fn disconnects(value: Value) -> Vec<ConnectCodeTransform> {
    transforms::disconnects(&FromValue::from_value(value))
}

/// The proxy of a switch; `apply` gives it its options.
fn switched(value: Value) -> Option<ProxyOptions> {
    bool::from_value(value).then(ProxyOptions::default)
}
