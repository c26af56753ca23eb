//! Tests of values in force: sources, members of lists, and what is masked.
//! In: flags and variables → out: rows.
//! Uses `LoadedConfig` without files. Never: a server.
//! A new kind of secret gets a line here.

use super::*;

#[test]
fn rows_have_sources_and_no_secrets() {
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let flags = pairs(&[
        ("client.token.hmac_secret_key", "hunter2"),
        ("engine.redis.address", "redis://me:hunter2@a:1,redis://b:2"),
        ("http_api.keys", r#"[{"name":"shop","key":"hunter2","methods":["publish"]}]"#),
        (
            "proxies",
            r#"[{"name":"pay","endpoint":"http://u:hunter2@c/x","http":{"static_headers":{"A":"hunter2"}}}]"#,
        ),
    ]);
    let variables = pairs(&[("FANWIRE_CLIENT_CHANNEL_LIMIT", "7")]);
    let loaded = LoadedConfig::load(None, variables.into_iter(), &flags).expect("right").0;
    let rows = loaded.values_in_force();
    let shown = |key: &str| {
        let row = rows.iter().find(|row| row.key == key).expect(key);
        (row.value.as_str(), row.source.to_string())
    };
    let flag = |name: &str| format!("flag --{name}");
    assert_eq!(
        shown("client.channel_limit"),
        ("\"7\"", "environment FANWIRE_CLIENT_CHANNEL_LIMIT".to_owned())
    );
    assert_eq!(shown("client.token.hmac_secret_key").0, "***");
    assert_eq!(shown("engine.redis.address").0, "\"redis://***@a:1,redis://b:2\"");
    assert_eq!(shown("http_api.keys[shop].key"), ("***", flag("http_api.keys")));
    assert_eq!(shown("http_api.keys[shop].methods").0, r#"["publish"]"#);
    assert_eq!(shown("proxies[pay].endpoint").0, "\"http://***@c/x\"");
    assert_eq!(shown("proxies[pay].http.static_headers").0, "***");
    assert_eq!(shown("log.level"), ("\"info\"", "default".to_owned()));
    assert!(rows.iter().all(|row| !row.value.contains("hunter2")), "{rows:?}");
}
