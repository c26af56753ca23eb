//! Tests of what a server is told, and what is read from its log.
//! In: settings; a log as far as it was written → out: a configuration; the address, once its line is whole.
//! Uses texts only; starts nothing.
//! How a server is started is exercised by every scenario.

use super::{configuration, printed_address};

#[test]
fn an_address_counts_once_its_line_is_whole() {
    for early in ["", "{\"level\":\"WARN\"}\n", "Fanwire 0.1.0 listens on 127.0.0.1:80"] {
        assert_eq!(printed_address(early), None, "{early:?}");
    }
    let whole = "{\"level\":\"WARN\"}\nFanwire 0.1.0 listens on 127.0.0.1:8001\n\n  WebSocket\n";
    assert_eq!(printed_address(whole), "127.0.0.1:8001".parse().ok());
}

#[test]
fn settings_replace_their_keys_and_leave_the_others() {
    let settings = serde_json::json!({
        "channel": { "history_memory_max": 1, "without_namespace": { "history_size": 2 } },
        "engine": { "type": "redis", "redis": { "address": "there" } },
    });
    let whole = configuration(settings);
    let channel = &whole["channel"];
    assert_eq!(channel["history_memory_max"], 1);
    assert_eq!(channel["without_namespace"]["history_size"], 2);
    assert_eq!(channel["without_namespace"]["allow_subscribe_for_client"], true);
    assert_eq!(whole["engine"]["redis"]["address"], "there");
    assert_eq!(whole["engine"]["type"], "redis");
}
