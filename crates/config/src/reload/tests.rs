//! Tests of configurations that are read again: what runs from then on, and which keys are named.
//! In: a running configuration and a new one, as JSON → out: values, and names of keys.
//! Uses `LoadedConfig` without files. Never: a server.
//! Whether a key can change is also changed here.

use fanwire_testing::Folder;
use serde_json::json;

use super::super::entries;
use super::*;

fn collected(tree: serde_json::Value) -> (Settings, Vec<Finding>) {
    let serde_json::Value::Object(tree) = tree else { panic!("a file is an object") };
    collect(Some((Path::new("fanwire.json"), tree)), std::iter::empty(), &[], false)
}

fn loaded(tree: serde_json::Value) -> LoadedConfig {
    let (settings, findings) = collected(tree);
    LoadedConfig::of(settings, findings).expect("the configuration is right").0
}

fn reloaded(before: &LoadedConfig, tree: serde_json::Value) -> Result<Reload, ConfigError> {
    let (written, findings) = collected(tree);
    before.reload_from(&written, findings)
}

fn reload(before: &LoadedConfig, tree: serde_json::Value) -> Reload {
    reloaded(before, tree).expect("the configuration is right")
}

#[test]
fn keys_that_can_change_take_effect_and_others_are_named() {
    let before = loaded(json!({
        "client": {"allowed_origins": ["https://a.example"], "token": {"hmac_secret_key": "old"}},
        "http_server": {"port": 8000},
        "log": {"level": "info"},
    }));
    let after = reload(
        &before,
        json!({
            "client": {"allowed_origins": ["https://a.example"], "token": {"hmac_secret_key": "new"}},
            "http_server": {"port": 9000},
            "log": {"level": "debug"},
            "shutdown": {"timeout": "30s"},
        }),
    );
    assert_eq!(after.changed, ["client.token.hmac_secret_key", "log.level"]);
    assert_eq!(after.needs_restart, ["http_server.port"]);
    let config = &after.loaded.config;
    assert_eq!((config.http_server.port, &*config.log.level), (8000, "debug"));
    assert_eq!(&*config.client.token.hmac_secret_key, "new");
    assert_eq!(after.written.http_server.port, 9000);
}

#[test]
fn a_value_that_needs_a_restart_is_named_until_it_is_taken_back() {
    let first = json!({"client": {"token": {"hmac_secret_key": "key"}}, "shards": 2});
    let second = json!({"client": {"token": {"hmac_secret_key": "key"}}, "shards": 4});
    let mut running = loaded(first.clone());
    for _ in 0..2 {
        let after = reload(&running, second.clone());
        assert_eq!(after.needs_restart, ["shards"]);
        assert!(after.changed.is_empty());
        running = after.loaded;
    }
    assert!(reload(&running, first).needs_restart.is_empty());
}

#[test]
fn namespaces_come_go_and_change() {
    let file = |namespaces: serde_json::Value| {
        json!({
            "client": {"token": {"hmac_secret_key": "key"}},
            "channel": {"namespaces": namespaces},
        })
    };
    let before = loaded(file(json!([{"name": "chat"}, {"name": "news", "presence": true}])));
    let after =
        reload(&before, file(json!([{"name": "price"}, {"name": "news", "presence": false}])));
    assert_eq!(
        after.changed,
        [
            "channel.namespaces[chat]",
            "channel.namespaces[price]",
            "channel.namespaces[news].presence"
        ]
    );
    assert!(after.needs_restart.is_empty());
    let namespaces = after.loaded.config.channel.namespaces.iter();
    let namespaces: Vec<_> = namespaces.map(|one| (one.name.as_str(), one.presence)).collect();
    assert_eq!(namespaces, [("price", false), ("news", false)]);
}

#[test]
fn the_delivery_of_a_namespace_stays_even_after_it_was_removed() {
    let file = |namespaces: serde_json::Value| {
        json!({
            "client": {"token": {"hmac_secret_key": "key"}},
            "channel": {"namespaces": namespaces},
        })
    };
    let latest = file(json!([{"name": "price", "delivery": "latest"}]));
    let running = reload(&loaded(file(json!([{"name": "price"}]))), file(json!([]))).loaded;
    let after = reload(&running, latest.clone());
    assert_eq!(after.needs_restart, ["channel.namespaces[price].delivery"]);
    assert_eq!(after.changed, ["channel.namespaces[price]"]);
    let unknown = reload(&loaded(file(json!([]))), latest);
    assert!(unknown.needs_restart.is_empty(), "a new namespace may have any delivery");
}

#[test]
fn proxies_need_a_restart_and_who_chooses_them_does_not() {
    let file = |timeout: &str, list: &[&str], is_on: bool| {
        let list = list.iter().map(|name| {
            json!({"name": name, "endpoint": "http://pay", "http": {"tls": {"enabled": is_on}}})
        });
        json!({
            "client": {"token": {"hmac_secret_key": "key"}},
            "channel": {"namespaces": [
                {"name": "chat", "subscribe_proxy_enabled": is_on, "subscribe_proxy_name": "pay"},
            ]},
            "rpc": {"proxy": {"timeout": timeout}, "namespaces": [
                {"name": "chat", "proxy_enabled": is_on, "proxy_name": "pay"},
            ]},
            "proxies": list.collect::<Vec<_>>(),
        })
    };
    let before = loaded(file("1s", &["pay"], false));
    let after = reload(&before, file("2s", &["pay", "game"], true));
    assert_eq!(
        after.changed,
        ["channel.namespaces[chat].subscribe_proxy_enabled", "rpc.namespaces[chat].proxy_enabled"]
    );
    assert_eq!(
        after.needs_restart,
        ["rpc.proxy.timeout", "proxies[game]", "proxies[pay].http.tls.enabled"]
    );
    let running = after.loaded.config;
    assert!(running.rpc.namespaces["chat"].enabled);
    assert!(!running.proxies["pay"].http.tls.enabled);
    assert_eq!(running.rpc.proxy.timeout.as_secs(), 1);
}

#[test]
fn an_error_names_its_key_and_changes_nothing() {
    let before = loaded(json!({"client": {"token": {"hmac_secret_key": "key"}}}));
    let broken = json!({"client": {"token": {"hmac_secret_key": "key"}, "channel_limit": "many"}});
    let Err(error) = reloaded(&before, broken) else { panic!("this is no number") };
    assert!(error.to_string().contains("client.channel_limit"), "{error}");
}

#[test]
fn new_values_that_contradict_old_ones_are_refused() {
    let file = |delivery: &str, positions: bool| {
        json!({
            "client": {"token": {"hmac_secret_key": "key"}},
            "channel": {"namespaces": [{
                "name": "price", "delivery": delivery, "force_positioning": positions,
                "history_size": 1, "history_ttl": "60s",
            }]},
        })
    };
    let before = loaded(file("latest", false));
    let Err(error) = reloaded(&before, file("reliable", true)) else {
        panic!("latest delivery and positions exclude each other")
    };
    assert!(
        error.to_string().contains("channel.namespaces[price].delivery, which need"),
        "{error}"
    );
}

#[test]
fn a_namespace_with_a_new_proxy_needs_a_restart() {
    let before = loaded(json!({"client": {"token": {"hmac_secret_key": "key"}}}));
    let written = json!({
        "client": {"token": {"hmac_secret_key": "key"}},
        "proxies": [{"name": "shop", "endpoint": "http://127.0.0.1:3001"}],
        "channel": {"namespaces": [{
            "name": "orders", "subscribe_proxy_enabled": true, "subscribe_proxy_name": "shop",
        }]},
    });
    let Err(error) = reloaded(&before, written) else { panic!("proxies need a restart") };
    let text = error.to_string();
    assert!(text.contains("proxies[shop]") && text.contains("restart"), "{text}");
}

#[test]
fn every_listed_key_exists() {
    for name in CAN_CHANGE {
        assert!(find(name).is_some_and(|entry| entry.works()), "{name}");
    }
    assert!(LISTS[0].find("delivery").is_some_and(|_| is_fixed_in_namespace("delivery")));
    assert!(entries().iter().any(|entry| !can_change(&entry.name)));
}

#[test]
fn an_unknown_key_and_an_emptied_file_change_nothing() {
    let before =
        loaded(json!({"client": {"token": {"hmac_secret_key": "key"}}, "log": {"level": "debug"}}));
    let misspelt =
        json!({"client": {"token": {"hmac_secret_key": "key"}}, "log": {"levle": "debug"}});
    let Err(error) = reloaded(&before, misspelt) else { panic!("a key is misspelt") };
    assert!(
        error.to_string().contains("log.levle is not a known key, did you mean log.level?"),
        "{error}"
    );
    let folder = Folder::new("empty");
    for text in ["", "# nothing\n"] {
        let path = folder.write("config.yaml", text);
        let Err(error) = before.reload(Some(Path::new(&path)), std::iter::empty(), &[]) else {
            panic!("it is empty")
        };
        assert!(error.to_string().contains("there is no key in the file any more"), "{error}");
    }
}

#[test]
fn named_keys_of_the_api_can_change() {
    let with = |key: &str| json!({"client": {"insecure": true}, "http_api": {"keys": [{"name": "shop", "key": key}]}});
    let after = reload(&loaded(with("old")), with("new"));
    assert_eq!(after.changed, ["http_api.keys[shop].key"]);
    assert_eq!(&*after.loaded.config.http_api.keys["shop"].key, "new");
    let after = reload(&after.loaded, json!({"client": {"insecure": true}}));
    assert_eq!(after.changed, ["http_api.keys[shop]"]);
    assert!(after.loaded.config.http_api.keys.is_empty());
}
