//! Tests of relations between keys and of what the node judges.
//! In: trees that fit key by key → out: what is still wrong with them.
//! Uses `load` with flags. Never: files.
//! A relation between keys is a test here.

use crate::{ConfigError, load};

mod exposure;

/// All findings for these flags, as lines.
pub(super) fn found(flags: &[(&str, &str)]) -> Vec<String> {
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
fn http2_without_tls_needs_an_internal_port() {
    let errors = |port| {
        let flags = [("http_server.h2c_external", "true"), ("http_server.internal_port", port)];
        found(&flags).into_iter().filter(|line| line.contains("h2c_external needs")).count()
    };
    assert_eq!([errors("8000"), errors("9000")], [1, 0]);
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
    let sse = |enabled| found(&[("sse.enabled", enabled), ("sse.handler_prefix", "/emulation/")]);
    assert_eq!((sse("true").len(), sse("false").len()), (1, 0));
    let uni = ["uni_websocket", "uni_sse", "uni_http_stream"].map(|name| {
        let (enabled, path) = (format!("{name}.enabled"), format!("{name}.handler_prefix"));
        found(&[(&enabled, "true"), (&path, "/connection/websocket")]).len()
    });
    assert_eq!(uni, [1; 3]);
}

#[test]
fn codes_of_connect_become_disconnects_and_statuses_that_exist() {
    let disconnects = "client.connect_code_to_unidirectional_disconnect";
    let responses = "uni_sse.connect_code_to_http_response";
    let of = |section: &str, enabled: &str, transforms: &str| {
        let names = [format!("{section}.enabled"), format!("{section}.transforms")];
        found(&[(&names[0], enabled), (&names[1], transforms), ("client.insecure", "true")])[0]
            .clone()
    };
    let insecure = of(disconnects, "true", "[]");
    assert!(insecure.contains("client.insecure is true"), "{insecure}");
    for (section, transforms, expected) in [
        (
            disconnects,
            r#"[{"code": 0, "to": {"code": 4000}}]"#,
            "is \"code: 0\", expected codes of errors, which are above 0",
        ),
        (
            disconnects,
            r#"[{"code": 400}]"#,
            "is \"to.code: 0\", expected codes of disconnects, 3000 to 4999",
        ),
        (
            disconnects,
            r#"[{"code": 400, "to": {"status_code": 401}}]"#,
            "is \"[{\\\"code\\\": 400, \\\"to\\\": {\\\"status_code\\\": 401}}]\", expected a list of {\"code\", \"to\": {\"code\", \"reason\"}}",
        ),
        (
            responses,
            r#"[{"to": {"status_code": 401}}]"#,
            "is \"code: 0\", expected codes of errors or disconnects, which are above 0",
        ),
        (
            responses,
            r#"[{"code": 109, "to": {"body": "x"}}]"#,
            "is \"to.status_code: 0\", expected HTTP statuses from 200 to 599",
        ),
    ] {
        let key = format!("{section}.transforms");
        let expected = format!("error: flag --{key}: {key} {expected}");
        assert_eq!(of(section, "true", transforms), expected);
    }
    let off = of(responses, "false", r#"[{"code": 109}]"#);
    assert!(off.contains("client.insecure is true"), "{off}");
}

#[test]
fn a_server_nobody_can_connect_to_is_warned_about() {
    let flags = [("channel.max_length", "100")];
    assert!(found(&flags)[0].starts_with("warning: client.token has no key"));
    for open in [
        ("client.token.hmac_secret_key", LONG),
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
            ("client.token.hmac_secret_key", LONG),
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
    for fine in ["${", "$ecret", "a${b}"].map(|text| format!("{text}{LONG}")) {
        assert_eq!(found(&[("client.token.hmac_secret_key", &fine)]).len(), 0, "{fine}");
    }
}

#[test]
fn personal_channels_that_every_client_may_subscribe_to_are_a_warning() {
    let personal = ("client.subscribe_to_user_personal_channel.enabled", "true");
    let open = ("channel.without_namespace.allow_subscribe_for_client", "true");
    let base = [personal, ("client.token.hmac_secret_key", LONG)];
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

#[test]
fn a_short_secret_is_a_warning_that_does_not_show_it() {
    for (key, secret, expected) in [
        ("client.token.hmac_secret_key", "s", "has 1 byte, and a program that guesses it can sign"),
        ("client.subscription_token.hmac_secret_key", &LONG[1..], "has 31 bytes, and a program"),
        ("http_api.key", "hunter2", "has 7 bytes, and a program that guesses it may publish"),
    ] {
        let others = [("client.insecure", "false"), ("client.token.hmac_secret_key", LONG)];
        let enabled = ("client.subscription_token.enabled", "true");
        let found = found(&[&others[..], &[enabled, (key, secret)]].concat());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with(&format!("warning: flag --{key}: {key} {expected}"))
                && found[0].ends_with(
                    "; expected at least 32 random bytes, as `openssl rand -hex 32` prints them"
                )
                && !found[0].contains("hunter2"),
            "{found:?}"
        );
    }
    let without_api = [
        ("http_api.disabled", "true"),
        ("http_api.key", "s"),
        ("client.token.hmac_secret_key", LONG),
    ];
    assert_eq!(found(&without_api), Vec::<String>::new());
}

/// Returns the findings about one namespace `chat` with these keys, where clients connect with tokens.
fn found_in_chat(keys: &str, flags: &[(&str, &str)]) -> Vec<String> {
    let namespaces = format!(r#"[{{"name": "chat", {keys}}}]"#);
    let token = ("client.token.hmac_secret_key", LONG);
    let format = ("channel.publication_data_format", "json");
    found(&[&[("channel.namespaces", namespaces.as_str()), token, format], flags].concat())
}

#[test]
fn a_chat_of_which_clients_use_every_part_is_not_remarked_upon() {
    let keys = r#""allow_subscribe_for_client": true, "allow_publish_for_subscriber": true, "presence": true,
        "allow_presence_for_subscriber": true, "join_leave": true, "force_push_join_leave": true"#;
    assert_eq!(found_in_chat(keys, &[("http_api.disabled", "true")]), Vec::<String>::new());
    let asked = r#""allow_user_limited_channels": true, "allow_presence_for_client": true, "join_leave": true"#;
    assert_eq!(found_in_chat(asked, &[]), Vec::<String>::new());
    let personal = [
        ("client.subscribe_to_user_personal_channel.enabled", "true"),
        ("client.subscribe_to_user_personal_channel.personal_channel_namespace", "chat"),
    ];
    assert_eq!(found_in_chat(r#""history_size": 0"#, &personal), Vec::<String>::new());
    let insecure = r#""presence": true, "join_leave": true"#;
    let found = found_in_chat(insecure, &[("client.insecure", "true")]);
    assert_eq!(found.len(), 1, "client.insecure alone: {found:?}");
}

#[test]
fn presence_that_clients_may_not_ask_for_is_a_note_or_without_an_api_a_warning() {
    let keys =
        r#""allow_subscribe_for_client": true, "allow_publish_for_client": true, "presence": true"#;
    let expected = |severity: &str, readers: &str| {
        format!(
            "{severity}: flag --channel.namespaces: channel.namespaces[chat].presence is true, but clients may not ask for \
             it, and {readers}; set channel.namespaces[chat].allow_presence_for_subscriber or \
             channel.namespaces[chat].allow_presence_for_client to true, or presence to false"
        )
    };
    assert_eq!(found_in_chat(keys, &[]), [expected("note", "only the server API can read it")]);
    assert_eq!(
        found_in_chat(keys, &[("http_api.disabled", "true")]),
        [expected("warning", "there is no server API, so nothing can read it")]
    );
    let without_namespace = ("channel.without_namespace.presence", "true");
    let found = found(&[without_namespace, ("client.token.hmac_secret_key", LONG)]);
    assert!(
        found[0].starts_with("note: flag --channel.without_namespace.presence: channel.without_namespace.presence is true"),
        "{found:?}"
    );
}

#[test]
fn a_namespace_that_no_client_may_subscribe_to_is_a_note_or_without_tokens_and_api_a_warning() {
    let key = "channel.namespaces[chat].allow_subscribe_for_client";
    assert_eq!(
        found_in_chat(r#""history_size": 0"#, &[]),
        [format!(
            "note: flag --channel.namespaces: {key} is false, so clients are refused with 103, except with a subscription \
             token; connection tokens and the server API can subscribe them, too. Set it to true if clients may subscribe \
             without that"
        )]
    );
    let closed = [
        ("client.token.hmac_secret_key", ""),
        ("client.allow_anonymous_connect_without_token", "true"),
        ("http_api.disabled", "true"),
    ];
    let keys = r#""allow_publish_for_client": true"#;
    assert_eq!(
        found_in_chat(keys, &closed),
        [format!(
            "warning: flag --channel.namespaces: {key} is false, and there are neither tokens, personal channels nor a \
             server API that subscribe clients, so no client can be in such a channel; set it to true, or leave out the \
             namespace"
        )]
    );
    let redis = [&closed[..], &[("engine.type", "redis")]].concat();
    assert!(found_in_chat(keys, &redis)[0].starts_with("note"), "another node may have the API");
}

#[test]
fn a_namespace_that_nothing_can_publish_in_is_a_warning() {
    assert_eq!(
        found_in_chat(r#""allow_subscribe_for_client": true"#, &[("http_api.disabled", "true")]),
        [
            "warning: flag --channel.namespaces: channel.namespaces[chat].allow_publish_for_subscriber is false, as is \
             allow_publish_for_client, and http_api.disabled is true, so nothing can publish there; set one of the \
             permissions to true, or http_api.disabled to false"
        ]
    );
}

#[test]
fn joins_that_no_client_receives_are_a_warning() {
    let at = "channel.namespaces[chat]";
    assert_eq!(
        found_in_chat(r#""allow_subscribe_for_client": true, "join_leave": true"#, &[]),
        [format!(
            "warning: flag --channel.namespaces: {at}.join_leave is true, but no client receives joins and leaves, because \
             they are for subscribers that ask for them and may see presence; set {at}.force_push_join_leave or \
             {at}.allow_presence_for_subscriber to true"
        )]
    );
    assert_eq!(
        found_in_chat(r#""allow_subscribe_for_client": true, "force_push_join_leave": true"#, &[]),
        [format!(
            "warning: flag --channel.namespaces: {at}.force_push_join_leave is true, but without {at}.join_leave there are \
             no joins and leaves to send; set {at}.join_leave to true"
        )]
    );
}

#[test]
fn windows_of_clients_without_takeover_or_memory_are_warned_about() {
    let secret = ("client.token.hmac_secret_key", LONG);
    let takeover = ("websocket.client_context_takeover", "true");
    let required = ("websocket.require_client_max_window_bits", "true");
    assert_eq!(
        found(&[secret, required]),
        ["warning: flag --websocket.require_client_max_window_bits: \
             websocket.require_client_max_window_bits is true, but without \
             websocket.client_context_takeover no window is kept, and no offer is declined"]
    );
    assert_eq!(found(&[secret, required, takeover]).len(), 0);
    let none = ("websocket.compression_memory_max", "4096");
    assert_eq!(
        found(&[secret, takeover, none]),
        ["warning: flag --websocket.compression_memory_max: websocket.compression_memory_max \
             is 4096, less than the window of one client (4136 bytes), so \
             websocket.client_context_takeover has no effect"]
    );
    assert_eq!(found(&[secret, none]).len(), 0);
    let small = ("websocket.client_max_window_bits", "11");
    assert_eq!(found(&[secret, takeover, none, small]).len(), 0);
    let off = ("websocket.compression", "false");
    assert_eq!(found(&[secret, takeover, none, off]).len(), 0);
}

/// A secret of the required length.
const LONG: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn tls_needs_a_certificate_and_its_key() {
    let internal = [("http_server.internal_port", "9000"), ("client.insecure", "true")];
    for (section, more, what) in [
        ("http_server.tls", &[][..], "the server's certificate"),
        ("http_server.internal_tls", &internal[..1], "the certificate of the internal port"),
    ] {
        let enabled = format!("{section}.enabled");
        let (cert, key) = (format!("{section}.cert_pem"), format!("{section}.key_pem"));
        let mut flags = vec![(enabled.as_str(), "true"), ("client.insecure", "true")];
        flags.extend_from_slice(more);
        let lines = found(&flags);
        let right = "as PEM, base64 of PEM, or the name of a file with it";
        assert_eq!(lines[0], format!("error: {cert} is empty, expected {what} {right}"));
        let line = format!("error: {key} is empty, expected the private key of the certificate");
        assert_eq!(lines[1], format!("{line} {right}"));
        flags.extend([(cert.as_str(), "cert.pem"), (key.as_str(), "key.pem")]);
        assert!(!found(&flags).iter().any(|line| line.contains("tls")), "{section}");
    }
}

#[test]
fn tls_of_an_internal_listener_that_does_not_exist_is_an_error_unless_both_have_tls() {
    let internal = [
        ("client.insecure", "true"),
        ("http_server.internal_tls.enabled", "true"),
        ("http_server.internal_tls.cert_pem", "cert.pem"),
        ("http_server.internal_tls.key_pem", "key.pem"),
    ];
    let line = "flag --http_server.internal_tls.enabled: http_server.internal_tls.enabled is true, but there is \
                no internal listener; set http_server.internal_port, or http_server.tls instead";
    assert_eq!(found(&internal)[0], format!("error: {line}"));
    let all = [
        ("http_server.tls.enabled", "true"),
        ("http_server.tls.cert_pem", "cert.pem"),
        ("http_server.tls.key_pem", "key.pem"),
    ];
    let both: Vec<_> = internal.into_iter().chain(all).collect();
    assert!(found(&both).contains(&format!("warning: {line}")), "{:?}", found(&both));
    let external = found(&[("client.insecure", "true"), ("http_server.tls_external", "true")]);
    assert!(
        external.iter().any(|line| line.ends_with("but http_server.tls.enabled is not")),
        "{external:?}"
    );
}

#[test]
fn each_listener_has_the_tls_of_its_section() {
    let sections = |flags: &[(&str, &str)]| {
        let flag = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let flags: Vec<_> = flags.iter().map(flag).collect();
        let (config, _) = load(None, std::iter::empty(), &flags).expect("a configuration");
        let http = config.http_server;
        let client = http.client_tls().map_or("", |section| section.key);
        let internal = http.internal_tls().map_or("", |section| section.key);
        (client, internal)
    };
    let on = ("http_server.tls.enabled", "true");
    let files = [("http_server.tls.cert_pem", "c"), ("http_server.tls.key_pem", "k")];
    let internal = [
        ("http_server.internal_tls.enabled", "true"),
        ("http_server.internal_tls.cert_pem", "c"),
        ("http_server.internal_tls.key_pem", "k"),
    ];
    let split = ("http_server.internal_port", "9000");
    let external = ("http_server.tls_external", "true");
    let both = ("http_server.tls", "http_server.tls");
    assert_eq!(sections(&[]), ("", ""));
    assert_eq!(sections(&[on, files[0], files[1]]), both);
    assert_eq!(sections(&[on, files[0], files[1], split]), both);
    assert_eq!(sections(&[on, files[0], files[1], external]), both, "there is one listener");
    assert_eq!(sections(&[on, files[0], files[1], split, external]), ("http_server.tls", ""));
    let [enabled, cert, key] = internal;
    let own = "http_server.internal_tls";
    assert_eq!(sections(&[enabled, cert, key, split]), ("", own));
    assert_eq!(
        sections(&[on, files[0], files[1], enabled, cert, key, split]),
        ("http_server.tls", own)
    );
}

#[test]
fn secrets_of_the_documentation_are_refused() {
    let secret = "change-me-to-32-random-bytes-or-more";
    let found = found(&[("client.token.hmac_secret_key", secret)]);
    assert!(found[0].starts_with("error: flag --client.token.hmac_secret_key: "), "{found:?}");
    assert!(found[0].contains("which stands in the documentation"), "{found:?}");
}

#[test]
fn profiles_on_the_port_of_clients_are_warned_of() {
    let count = |port| {
        let flags = [
            ("debug.enabled", "true"),
            ("client.insecure", "true"),
            ("http_server.internal_port", port),
        ];
        found(&flags)
            .into_iter()
            .filter(|line| line.contains("profiles, which need no key"))
            .count()
    };
    assert_eq!([count(""), count("9000")], [1, 0]);
}

#[test]
fn permissions_and_limits_without_effect_are_named() {
    let keys = r#""allow_history_for_client": true, "history_size": 1000, "history_ttl": "60s", "allow_presence_for_client": true"#;
    let found = found_in_chat(keys, &[]);
    let names = |text: &str| found.iter().any(|line| line.contains(text));
    assert!(
        names("allow_presence_for_client is true, but without channel.namespaces[chat].presence"),
        "{found:?}"
    );
    assert!(
        names(
            "history_size is 1000, but a client that missed more than client.recovery_max_publication_limit (300)"
        ),
        "{found:?}"
    );
    let found = found_in_chat(r#""allow_history_for_client": true"#, &[]);
    assert!(
        found.iter().any(|line| line.contains("without channel.namespaces[chat].history_size")),
        "{found:?}"
    );
}

#[test]
fn sections_at_their_defaults_are_not_warned_of() {
    for (key, section) in [
        ("broker.nats", r#"{"url": "nats://localhost:4222", "tls": {"enabled": false}}"#),
        ("controller", r#"{"enabled": false}"#),
    ] {
        let found = found(&[(key, section), ("client.insecure", "true")]);
        assert!(found.iter().all(|line| !line.contains(key)), "{found:?}");
    }
    let used = [("controller", r#"{"enabled": true}"#)];
    assert!(found(&used).iter().any(|line| line.contains("controller is not supported yet")));
}
