//! Tests of suggestions for mistyped keys.
//! In: a wrong name → out: the known one that was meant, or none.
//! Uses the real catalog. Never: findings.
//! A slip of a finger is a line of the table.

use super::nearest;
use crate::catalog;

fn check(wrong: &str, meant: Option<&str>) {
    assert_eq!(nearest(wrong, catalog::names()), meant, "{wrong}");
}

#[test]
fn slips_of_fingers_are_understood() {
    check("client.ping_intervall", Some("client.ping_interval"));
    check("client.pign_interval", Some("client.ping_interval"));
    check("clinet", Some("client"));
    check("http_api.kes", Some("http_api.key"));
    check("websocket.compresion", Some("websocket.compression"));
    check("channel.namespace", Some("channel.namespaces"));
}

#[test]
fn a_key_in_the_wrong_section_is_found_by_its_last_part() {
    check("allowed_origins", Some("client.allowed_origins"));
    check("queue_max_size", Some("client.queue_max_size"));
    check("token.user_id_claim_of_nobody", None);
}

#[test]
fn a_key_that_has_lost_an_indentation_is_found_in_its_section() {
    check("client.hmac_secret_key", Some("client.token.hmac_secret_key"));
    check("client.connect.endpoint", Some("client.proxy.connect.endpoint"));
    check("channel.history_size", Some("channel.without_namespace.history_size"));
    check("http_server.cert_pem", Some("http_server.tls.cert_pem"));
}

#[test]
fn what_is_far_from_everything_gets_no_suggestion() {
    check("colour", None);
    check("x", None);
    // Many sections have it, so none of them is the one that was meant.
    check("enabled", None);
}

#[test]
fn a_key_from_before_there_were_sections_is_found() {
    check("token_hmac_secret_key", Some("client.token.hmac_secret_key"));
    check("redis_sentinel_address", Some("engine.redis.sentinel_address"));
    check("client_user_connection_limit", Some("client.user_connection_limit"));
}
