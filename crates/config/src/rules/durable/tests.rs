//! Tests of the rules of Durable Streams: namespace, engine, open access.
//! In: flags → out: what is still wrong with them.
//! Uses `load` with flags. Never: serves.
//! Changed here: mistakes about Durable Streams. Limits of single keys are in their rows.

use crate::rules::tests::found;

#[test]
fn streams_need_a_namespace_with_history_and_the_memory_engine() {
    let with = |flags: &[(&str, &str)]| {
        let base = [("client.insecure", "true"), ("durable_streams.enabled", "true")];
        let found = found(&[&base, flags].concat());
        found.into_iter().filter(|line| line.contains("durable_streams")).collect::<Vec<_>>()
    };
    let log = r#"[{"name": "log", "history_size": 10, "history_ttl": "1h"}]"#;
    let right = [("channel.namespaces", log), ("durable_streams.namespace", "log")];
    assert_eq!(with(&right), [""; 0]);
    let empty = ("channel.namespaces", r#"[{"name": "log"}]"#);
    for wrong in [&right[1..], &right[..1], &[empty, right[1]]] {
        let found = with(wrong);
        assert!(found[0].starts_with("error:"), "{found:?}");
        assert!(found[0].contains("durable_streams.namespace is "), "{found:?}");
    }
    let redis = with(&[&right[..], &[("engine.type", "redis")]].concat());
    assert!(redis[0].contains("set engine.type to memory"), "{redis:?}");
    let stream = r#"[{"name": "log", "history_size": 10, "history_ttl": "1h", "subscribe_stream_proxy_enabled": true}]"#;
    let endpoint = ("channel.proxy.subscribe_stream.endpoint", "127.0.0.1:1");
    let unasked = with(&[("channel.namespaces", stream), right[1], endpoint]);
    assert!(unasked[0].starts_with("warning:"), "{unasked:?}");
    assert!(unasked[0].contains("Set subscribe_proxy_enabled instead"), "{unasked:?}");
    let open = with(&[&right[..], &[("durable_streams.insecure", "true")]].concat());
    assert!(open[0].starts_with("warning:") && open[0].contains("for tests only"), "{open:?}");
}
