//! Tests of the endpoints and headers of event proxies, and of the proxies that namespaces choose.
//! In: flags → out: the remarks about them.
//! Uses `load` with flags. Never: files.
//! A relation between keys of proxies is a test here.

use super::super::tests::found;

/// The remarks about these flags, for a server with a connect proxy and a proxy `pay`.
fn check(flags: &[(&str, &str)], expected: &[&str]) {
    let fixed = [
        ("client.proxy.connect.enabled", "true"),
        ("client.proxy.connect.endpoint", "http://backend:3000/connect"),
        ("proxies", r#"[{"name": "pay", "endpoint": "http://pay"}]"#),
    ];
    let flags: Vec<_> = fixed.iter().chain(flags).copied().collect();
    assert_eq!(found(&flags), expected, "{flags:?}");
}

#[test]
fn a_connect_proxy_is_a_way_to_connect() {
    check(&[], &[]);
}

#[test]
fn endpoints_are_urls_or_hosts_with_ports() {
    for right in [
        "http://a",
        "https://user:word@a.example:8443/x?y",
        "http://[::1]:80/x",
        "http://[::1]",
        "grpc://a:1",
        "a:65535",
        "[::1]:1",
        "grpc://a:1/",
        "grpc://a:1/events",
        "dns:///a.example:1",
        "passthrough:///10.0.0.1:1",
        "dns:1",
    ] {
        check(&[("rpc.proxy.endpoint", right)], &[]);
    }
    for wrong in [
        "http://",
        "https://:80/x",
        "http://a:0",
        "a",
        "grpc://a",
        "ftp://a",
        "a:1/x",
        "a b:1",
        "HTTP://a",
        ":1",
        "dns:///a",
        "dns:///",
        "dns://8.8.8.8/a:1",
        "unix:///run/a.sock",
    ] {
        let expected = format!(
            "error: flag --rpc.proxy.endpoint: rpc.proxy.endpoint is {wrong:?}, expected a URL such as \
             http://backend:3000/events, or host:port or grpc://host:port of a gRPC service"
        );
        check(&[("rpc.proxy.endpoint", wrong)], &[&expected]);
    }
    let flags = [("client.proxy.refresh.enabled", "true"), ("proxies", r#"[{"name": "pay"}]"#)];
    let found = found(&flags).join("\n");
    for at in ["client.proxy.refresh", "proxies[pay]"] {
        assert!(found.contains(&format!("{at}.endpoint is \"\", expected a URL")), "{found}");
    }
}

#[test]
fn a_chosen_proxy_exists() {
    check(
        &[("channel.without_namespace.subscribe_proxy_enabled", "true")],
        &["error: flag --channel.without_namespace.subscribe_proxy_enabled: \
           channel.without_namespace.subscribe_proxy_enabled is true, but channel.proxy.subscribe.endpoint is empty; set it, \
           or set channel.without_namespace.subscribe_proxy_name to the name of a member of `proxies`"],
    );
    let namespaces = r#"[{"name": "chat", "publish_proxy_enabled": true, "publish_proxy_name": "pai", "allow_subscribe_for_client": true}]"#;
    check(
        &[("channel.namespaces", namespaces)],
        &[
            "error: flag --channel.namespaces: channel.namespaces[chat].publish_proxy_name is \"pai\", but `proxies` has no \
           member with that name (did you mean \"pay\"?); add it there, or leave \
           channel.namespaces[chat].publish_proxy_name out for channel.proxy.publish",
        ],
    );
    let namespaces = r#"[{"name": "math", "proxy_enabled": true, "proxy_name": "other"}]"#;
    check(
        &[("rpc.namespaces", namespaces), ("rpc.without_namespace.proxy_enabled", "true")],
        &[
            "error: flag --rpc.without_namespace.proxy_enabled: rpc.without_namespace.proxy_enabled is true, but \
             rpc.proxy.endpoint is empty; set it, or set rpc.without_namespace.proxy_name to the name of a member of `proxies`",
            "error: flag --rpc.namespaces: rpc.namespaces[math].proxy_name is \"other\", but `proxies` has no member with \
             that name; add it there, or leave rpc.namespaces[math].proxy_name out for rpc.proxy",
        ],
    );
    let right = r#"[{"name": "math", "proxy_enabled": true, "proxy_name": "pay"}, {"name": "off", "proxy_name": "none"}]"#;
    check(&[("rpc.namespaces", right)], &[]);
}

#[test]
fn streams_need_grpc_and_no_other_proxy() {
    let stream = "channel.without_namespace.subscribe_stream_proxy_enabled";
    let endpoint = "channel.proxy.subscribe_stream.endpoint";
    check(
        &[
            (stream, "true"),
            (endpoint, "a:1"),
            ("channel.without_namespace.subscribe_stream_proxy_bidirectional", "true"),
        ],
        &[],
    );
    for kind in ["subscribe", "publish", "sub_refresh"] {
        let key = format!("channel.without_namespace.{kind}_proxy_enabled");
        let name = format!("channel.without_namespace.{kind}_proxy_name");
        let expected = format!(
            "error: flag --{key}: {key} is true, but {stream} is true, too, and a stream decides by itself; switch one of \
             them off"
        );
        check(&[(stream, "true"), (endpoint, "a:1"), (&key, "true"), (&name, "pay")], &[&expected]);
    }
    check(
        &[(stream, "true"), ("channel.without_namespace.subscribe_stream_proxy_name", "pay")],
        &["error: flag --channel.without_namespace.subscribe_stream_proxy_enabled: \
           channel.without_namespace.subscribe_stream_proxy_enabled is true, but proxies[pay].endpoint is \"http://pay\", and \
           streams need gRPC: expected host:port or grpc://host:port"],
    );
    check(
        &[("channel.without_namespace.subscribe_stream_proxy_bidirectional", "true")],
        &["error: flag --channel.without_namespace.subscribe_stream_proxy_bidirectional: \
           channel.without_namespace.subscribe_stream_proxy_bidirectional is true, but there are no streams; set \
           channel.without_namespace.subscribe_stream_proxy_enabled to true"],
    );
}

#[test]
fn proxies_of_maps_have_endpoints() {
    for kind in ["publish", "remove"] {
        let key = format!("channel.without_namespace.map.{kind}_proxy_enabled");
        let name = format!("channel.without_namespace.map.{kind}_proxy_name");
        let endpoint = format!("channel.proxy.map_{kind}.endpoint");
        let expected = format!(
            "error: flag --{key}: {key} is true, but {endpoint} is empty; set it, or set {name} to the name of a member of \
             `proxies`"
        );
        let check_map = |settings: &[(&str, &str)], expected: &[&str]| {
            let map = [
                ("channel.without_namespace.subscription_type", "map"),
                ("channel.without_namespace.map.mode", "persistent"),
                (&key, "true"),
            ];
            check(&[&map, settings].concat(), expected);
        };
        check_map(&[], &[&expected]);
        check_map(&[(&endpoint, "http://a")], &[]);
        check_map(&[(&name, "pay")], &[]);
    }
}

#[test]
fn names_of_headers_are_tokens_and_those_of_one_hop_are_not_passed_on() {
    for (key, value) in [
        ("http_headers", "X:Y"),
        ("emulated_headers", r#"[""]"#),
        ("grpc_metadata", "ü"),
        ("http.static_headers", r#"{"X Y": "a"}"#),
        ("grpc.static_metadata", r#"{"X,Y": "a"}"#),
        ("grpc.credentials_key", "(x)"),
    ] {
        let key = format!("rpc.proxy.{key}");
        let found =
            found(&[(&key, value), ("client.allow_anonymous_connect_without_token", "true")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("error: flag --{key}: {key} has ")), "{found:?}");
        assert!(found[0].contains("expected names of headers"), "{found:?}");
    }
    check(
        &[
            ("client.proxy.connect.http_headers", "Cookie host"),
            ("rpc.proxy.grpc_metadata", "X-Key"),
        ],
        &[
            "warning: flag --client.proxy.connect.http_headers: client.proxy.connect.http_headers has \"host\", which is not \
             passed on, because it is about one connection or one body; leave it out",
            "warning: flag --rpc.proxy.grpc_metadata: rpc.proxy.grpc_metadata has \"X-Key\", but keys of metadata are in lower \
             case, so none matches it; write \"x-key\"",
        ],
    );
}

#[test]
fn values_of_headers_have_no_control_characters() {
    for (key, value) in [
        ("rpc.proxy.http.static_headers", r#"{"X": "hunter2\r\nY: z"}"#),
        ("rpc.proxy.grpc.static_metadata", r#"{"x": "hunter2\u0000"}"#),
        ("rpc.proxy.grpc.credentials_value", "hunter2\n"),
    ] {
        let found =
            found(&[(key, value), ("client.allow_anonymous_connect_without_token", "true")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("has a value with a control character")
                && !found[0].contains("hunter2")
        );
    }
    check(&[("rpc.proxy.http.static_headers", r#"{"X": "a\tb"}"#)], &[]);
}
