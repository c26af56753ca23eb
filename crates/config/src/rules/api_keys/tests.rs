//! Tests of named keys of the API: what is wrong with them, and their environment form.
//! In: values of `http_api.keys` → out: findings, options.
//! Uses `load` with flags. Never: files.
//! A rule about named keys gets a row here.

use crate::load;
use crate::rules::tests::found;

const LONG: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn each_mistake_names_the_key_and_shows_no_secret() {
    for (members, severity, expected) in [
        (r#"[{"name":"shop"}]"#, "error", "http_api.keys[shop].key is empty, expected a secret"),
        (
            r#"[{"name":"shop","key":"hunter2"}]"#,
            "warning",
            "http_api.keys[shop].key is short enough to be guessed",
        ),
        (
            r#"[{"name":"shop","key":"KEY"},{"name":"news","key":"KEY"}]"#,
            "error",
            "http_api.keys[shop].key is also another key of the API",
        ),
        (
            r#"[{"name":"default","key":"KEY"}]"#,
            "error",
            "http_api.keys[default].name is \"default\", which is the name of http_api.key",
        ),
        (
            r#"[{"name":"shop","key":"KEY","methods":["publsh"]}]"#,
            "error",
            "http_api.keys[shop].methods has \"publsh\", which is not a method of the API",
        ),
        (
            r#"[{"name":"shop","key":"KEY","namespaces":["shop"]}]"#,
            "warning",
            "http_api.keys[shop].namespaces has \"shop\", which is not in channel.namespaces",
        ),
        (r#"[{"name":"s","key":"KEY"}]"#, "error", "http_api.keys[s].name is \"s\", expected at"),
        (r#"[{"name":"shop","kye":"KEY"}]"#, "warning", "http_api.keys[shop].kye"),
    ] {
        let members = members.replace("KEY", LONG);
        let all = found(&[("http_api.keys", &members), ("client.insecure", "true")]);
        let is_expected = |line: &String| line.starts_with(severity) && line.contains(expected);
        assert!(all.iter().any(is_expected), "{expected}: {all:?}");
        assert!(!all.iter().any(|line| line.contains(LONG) || line.contains("hunter2")), "{all:?}");
    }
}

#[test]
fn members_have_variables_and_grpc_has_the_same_keys() {
    let variables = [
        ("FANWIRE_HTTP_API_KEYS", r#"[{"name":"shop","methods":["publish"]}]"#),
        ("FANWIRE_HTTP_API_KEYS_SHOP_KEY", LONG),
        ("FANWIRE_CLIENT_INSECURE", "true"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (config, _) = load(None, variables.into_iter(), &[]).expect("a configuration");
    let http = config.api_options();
    assert_eq!(
        (&*http.keys["shop"].key, &http.keys["shop"].methods[..]),
        (LONG, &["publish".to_owned()][..])
    );
    let grpc = config.grpc_api_options();
    assert!(!grpc.insecure && grpc.keys == http.keys);
}
