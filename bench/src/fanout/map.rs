//! Changes of a map for `fanout --map`, and the same payloads as publications of a stream.
//! In: fields of requests with the payloads → out: requests of the server API; settings of both channels.
//! Uses the forms of the server API. Never: a socket.
//! Changed here: the keys and the settings; who gets the changes is in `fanout`.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Publication;
use crate::target::{API_KEY, history};
use fanwire_load::generator::publisher::{http_request, publish_request};

/// One change for each key; the request publishes its payload to a stream, and the trigger sets the key.
pub fn changes(channel: &str, payloads: &[String], keys: usize) -> Vec<Publication> {
    let change = |(number, field): (usize, &String)| {
        let body = format!(r#"{{"channel":"{channel}","key":"key-{number}",{field}}}"#);
        Publication {
            request: publish_request(channel, field, API_KEY),
            // They come by HTTP alone.
            body: String::new(),
            command: Bytes::new(),
            trigger: http_request("map_publish", &body, API_KEY),
        }
    };
    (0..keys).zip(payloads.iter().cycle()).map(change).collect()
}

/// A stream that has positions.
pub fn stream() -> Value {
    history(STREAM_SIZE)
}

/// A map whose stream has as many changes.
pub fn map() -> Value {
    let map = json!({ "mode": "recoverable", "key_ttl": "1h", "stream_size": STREAM_SIZE, "stream_ttl": "1h" });
    let namespace = json!({ "subscription_type": "map", "map": map });
    json!({ "channel": { "without_namespace": namespace } })
}

const STREAM_SIZE: usize = 100;
