//! Tests of relations between keys and of what the node judges.
//! In: trees that fit key by key → out: what is still wrong with them.
//! Uses `load` with flags. Never: files.
//! A relation between keys is a test here.

use crate::{ConfigError, load};

/// All findings for these flags, as lines.
fn found(flags: &[(&str, &str)]) -> Vec<String> {
    let flags: Vec<(String, String)> =
        flags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    match load(None, std::iter::empty(), &flags) {
        Ok((_, findings)) | Err(ConfigError::Findings(findings)) => {
            findings.iter().map(|one| format!("{}: {one}", one.severity)).collect()
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_pong_timeout_as_long_as_the_ping_interval_is_an_error() {
    let flags = [("client.insecure", "true"), ("client.pong_timeout", "25s")];
    assert_eq!(
        found(&flags)[0],
        "error: flag --client.pong_timeout: client.pong_timeout is \"25s\", expected less than \
         client.ping_interval (25s)"
    );
}

#[test]
fn what_the_node_refuses_names_the_namespace_and_its_source() {
    let namespaces = r#"[{"name": "chat", "channel_regex": "("}]"#;
    let found = found(&[("channel.namespaces", namespaces), ("client.insecure", "true")]);
    assert!(
        found[0].starts_with(
            "error: flag --channel.namespaces: channel.namespaces[chat].channel_regex is"
        ),
        "{found:?}"
    );
}

#[test]
fn two_endpoints_at_one_path_are_an_error() {
    assert_eq!(
        found(&[("health.handler_prefix", "/metrics")]),
        ["error: prometheus.handler_prefix claims the path \"/metrics\" as health.handler_prefix \
          does, expected a path of its own"]
    );
    assert_eq!(
        found(&[("health.handler_prefix", "/api/info/")]),
        ["error: flag --health.handler_prefix: health.handler_prefix claims the path \
          \"/api/info\" as http_api.handler_prefix does, expected a path of its own"]
    );
    assert_eq!(
        found(&[("health.handler_prefix", "/metrics"), ("prometheus.enabled", "false")]).len(),
        0
    );
}

#[test]
fn a_server_nobody_can_connect_to_is_warned_about() {
    let flags = [("channel.max_length", "100")];
    assert!(found(&flags)[0].starts_with("warning: client.token has no key"));
    for open in [
        ("client.token.hmac_secret_key", "secret"),
        ("client.allow_anonymous_connect_without_token", "true"),
        ("client.user_id_http_header", "X-User-Id"),
    ] {
        assert_eq!(found(&[open]).len(), 0, "{open:?}");
    }
}

#[test]
fn doors_left_open_are_warned_about() {
    let check = |key: &str| {
        let found = found(&[
            (key, "true"),
            ("client.channel_limit", "10"),
            ("client.token.hmac_secret_key", "secret"),
        ]);
        assert!(
            found[0].starts_with(&format!("warning: flag --{key}: {key} is true")),
            "{found:?}"
        );
    };
    check("client.insecure");
    check("client.insecure_skip_token_signature_verify");
    check("http_api.insecure");
}

#[test]
fn replicas_that_may_take_longer_than_a_quarter_of_a_reply_are_an_error() {
    let flags = |timeout| {
        let waits = [("engine.type", "redis"), ("engine.redis.wait.replicas", "1")];
        let others = [("client.insecure", "true"), ("engine.redis.wait.timeout", timeout)];
        found(&[waits, others].concat())
    };
    assert_eq!(
        flags("1001ms")[0],
        "error: flag --engine.redis.wait.timeout: engine.redis.wait.timeout is 1.001s, expected at \
         most a quarter of engine.redis.io_timeout (4s)"
    );
    assert!(!flags("1s").iter().any(|finding| finding.starts_with("error")));
}

#[test]
fn every_mistake_is_told_at_once() {
    let namespaces = r#"[{"name": "chat", "history_size": 5}, {"name": "chat", "channel_regex": "("}, {"name": "x"}]"#;
    let found = found(&[
        ("client.insecure", "true"),
        ("client.pong_timeout", "25s"),
        ("client.token.rsa_public_key", "none"),
        ("client.token.issuer_regex", "("),
        ("channel.namespaces", namespaces),
        ("channel.user_boundary", "##"),
        ("health.handler_prefix", "/metrics"),
        ("health.enabled", "true"),
        ("prometheus.enabled", "true"),
        ("engine.type", "redis"),
        ("engine.redis.address", "127.0.0.1:99999 http://127.0.0.1"),
    ]);
    let errors: Vec<&String> = found.iter().filter(|line| line.starts_with("error")).collect();
    for part in [
        "client.pong_timeout is",
        "client.token.rsa_public_key is",
        "client.token.issuer_regex is",
        "channel.user_boundary is \"##\"",
        "channel.namespaces[chat].history_ttl is",
        "channel.namespaces[1].name is \"chat\" a second time",
        "channel.namespaces[chat].channel_regex is",
        "channel.namespaces[2].name is \"x\"",
        "prometheus.handler_prefix claims",
        "the Redis address 127.0.0.1:99999 cannot",
        "the Redis address http://127.0.0.1 cannot",
    ] {
        assert_eq!(
            errors.iter().filter(|line| line.contains(part)).count(),
            1,
            "{part}: {errors:#?}"
        );
    }
    assert_eq!(errors.len(), 11, "{errors:#?}");
}

#[test]
fn what_a_wrong_value_would_be_compared_with_is_not_judged() {
    let broken = found(&[("client.ping_interval", "25"), ("client.pong_timeout", "30s")]);
    assert_eq!(broken.len(), 1, "{broken:#?}");
    let namespaces =
        r#"["text", {"name": "chat", "history_size": -1, "history_ttl": "1s"}, {"presence": 1}]"#;
    let broken = found(&[("client.insecure", "true"), ("channel.namespaces", namespaces)]);
    let errors: Vec<&String> = broken.iter().filter(|line| line.starts_with("error")).collect();
    for part in [
        "channel.namespaces[0] is \"text\"",
        "channel.namespaces[chat].history_size is -1",
        "channel.namespaces[2].presence is 1",
        "channel.namespaces[2].name is \"\"",
    ] {
        assert_eq!(
            errors.iter().filter(|line| line.contains(part)).count(),
            1,
            "{part}: {errors:#?}"
        );
    }
    assert_eq!(errors.len(), 4, "{errors:#?}");
}

#[test]
fn a_pattern_that_is_the_origin_of_no_page_is_warned_about() {
    let warned = |patterns: &str| {
        let found = found(&[("client.insecure", "true"), ("client.allowed_origins", patterns)]);
        found.iter().filter(|line| line.contains("the origin of no page")).count()
    };
    for good in [
        "*",
        "null NULL",
        "https://example.com http://[::1]:* https://*.example.com *.example.com",
        "tauri://localhost chrome-extension://* file://",
        r#"["https://example.com"]"#,
    ] {
        assert_eq!(warned(good), 0, "{good}");
    }
    for wrong in [
        "https://example.com/",
        "https://example.com/chat",
        "https://example.com,https://example.org",
        "example.com",
        "localhost:3000",
        "'*'",
    ] {
        assert_eq!(warned(wrong), 1, "{wrong}");
    }
}

#[test]
fn a_secret_that_was_to_be_put_in_and_was_not_stops_the_start() {
    let secret = ("client.token.hmac_secret_key", "${TOKEN_SECRET}");
    assert_eq!(
        found(&[secret]),
        ["error: flag --client.token.hmac_secret_key: client.token.hmac_secret_key is \
          \"${TOKEN_SECRET}\" as it stands there, as variables are not put in; set \
          FANWIRE_CLIENT_TOKEN_HMAC_SECRET_KEY instead"]
    );
    for fine in ["${", "$ecret", "a${b}", "s"] {
        assert_eq!(found(&[("client.token.hmac_secret_key", fine)]).len(), 0, "{fine}");
    }
}

#[test]
fn personal_channels_that_every_client_may_subscribe_to_are_a_warning() {
    let personal = ("client.subscribe_to_user_personal_channel.enabled", "true");
    let open = ("channel.without_namespace.allow_subscribe_for_client", "true");
    let base = [personal, ("client.token.hmac_secret_key", "0123456789abcdef0123456789abcdef")];
    assert_eq!(found(&base), Vec::<String>::new());
    assert_eq!(
        found(&[&base[..], &[open]].concat()),
        ["warning: flag --client.subscribe_to_user_personal_channel.enabled: \
          channel.without_namespace.allow_subscribe_for_client is true, so every client may subscribe to the personal \
          channels of others; turn it off, or set channel.without_namespace.allow_user_limited_channels"]
    );
    let limited = ("channel.without_namespace.allow_user_limited_channels", "true");
    assert_eq!(found(&[&base[..], &[open, limited]].concat()), Vec::<String>::new());

    let name = ("client.subscribe_to_user_personal_channel.personal_channel_namespace", "own");
    let namespaces = r#"[{"name": "own", "allow_subscribe_for_client": true}]"#;
    let named = found(&[&base[..], &[name, ("channel.namespaces", namespaces)]].concat());
    assert!(named[0].contains("channel.namespaces[own].allow_subscribe_for_client"), "{named:?}");
}
