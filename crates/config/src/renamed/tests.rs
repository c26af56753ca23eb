//! Tests of keys from before Centrifugo v6, and of files that were written for those versions.
//! In: names, trees → out: today's key; whether the file stops the start.
//! Uses the real catalog. Never: values.
//! A renamed key is a line of a table.

use std::path::Path;

use fanwire_testing::Folder;
use serde_json::{Value as Json, json};

use super::{PROXIES, RENAMED, about, is_configuration, renamed, renamed_in_namespace};
use crate::{Severity, catalog, keys};

#[test]
fn every_key_of_the_table_leads_to_one_that_is_known_and_is_none_itself() {
    let is_key = |now: &str| catalog::find(now).is_some();
    let is_there = |now: &str| is_key(now) || keys::proxy::PLACES.contains(&now);
    assert!(RENAMED.iter().all(|(_, now)| is_key(now)));
    for (old, now) in RENAMED.iter().chain(PROXIES) {
        assert!(is_there(now), "{old} leads to {now}");
        assert!(catalog::find(old).is_none() && !catalog::is_section(old), "{old}");
    }
}

#[test]
fn keys_from_before_there_were_sections_are_found_by_their_old_name() {
    let check = |old: &str, now: &str| assert_eq!(renamed(old), Some(now), "{old}");
    check("api_key", "http_api.key");
    check("namespaces", "channel.namespaces");
    check("admin", "admin.enabled");
    check("engine", "engine.type");
    check("broker", "broker.type");
    check("admin_password", "admin.password");
    check("uni_sse_handler_prefix", "uni_sse.handler_prefix");
    check("presence", "channel.without_namespace.presence");
    check("allow_subscribe_for_client", "channel.without_namespace.allow_subscribe_for_client");
    check("proxy_publish", "channel.without_namespace.publish_proxy_enabled");
    check("proxy_publish_timeout", "channel.proxy.publish.timeout");
    check("proxy_connect_endpoint", "client.proxy.connect.endpoint");
    check("proxy_subscribe_stream_endpoint", "channel.proxy.subscribe_stream.endpoint");
    check("proxy_http_headers", "client.proxy.connect.http_headers");
    check("token_jwks_public_endpoint", "client.token.jwks_public_endpoint");
    check("redis_address", "engine.redis.address");
    check("internal_port", "http_server.internal_port");
    for unknown in ["colour", "clinet", "client.insecur", "v3_use_offset", "proxy_grpc_cert_file"] {
        assert_eq!(renamed(unknown), None, "{unknown}");
    }
    assert_eq!(renamed_in_namespace("history_recover"), Some("force_recovery"));
    assert_eq!(renamed_in_namespace("api_key"), None);
}

fn severity(tree: &Json) -> Option<Severity> {
    let tree = tree.as_object().expect("the test's tree is an object");
    about(Path::new("config.json"), tree).map(|finding| finding.severity)
}

#[test]
fn a_file_of_nothing_but_old_keys_stops_the_start() {
    let stops = |tree: Json| assert_eq!(severity(&tree), Some(Severity::Error), "{tree}");
    stops(json!({"token_hmac_secret_key": "s", "allowed_origins": ["*"]}));
    stops(json!({"v3_use_offset": true, "anonymous": true, "pid_file": "x"}));
    stops(json!({"client": {"insecure": true}, "health": true, "port": 8000}));
    stops(json!({"engine": "redis", "redis_address": "r", "channel": {"namespaces": []}}));
}

#[test]
fn a_file_of_another_program_is_no_configuration() {
    let folder = Folder::new("recognised");
    let check = |text: &str, expect: bool| {
        let path = folder.write("config.json", text);
        assert_eq!(is_configuration(Path::new(&path)), Ok(expect), "{text}");
    };
    check(r#"{"client": {}}"#, true);
    check(r#"{"Client": {"x": 1}, "y": 1}"#, true);
    check(r#"{"token_hmac_secret_key": "s", "admin": true}"#, true);
    check("{}", false);
    check("", false);
    check(r#"{"name": "app", "client": "chat", "pid_file": "x"}"#, false);
    assert!(is_configuration(Path::new("/nowhere.json")).is_err());
}

#[test]
fn a_file_of_today_with_a_few_old_keys_is_warned_about() {
    let mixed = json!({"client": {}, "api_key": "s", "namespaces": []});
    assert_eq!(severity(&mixed), Some(Severity::Warning));
    for fine in
        [json!({}), json!({"namespaces": []}), json!({"client": {}, "pid_file": "x", "y": 1})]
    {
        assert_eq!(severity(&fine), None, "{fine}");
    }
}
