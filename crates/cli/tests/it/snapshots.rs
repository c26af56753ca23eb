//! Processes that are killed, with `engine.memory.snapshot_path`: no epoch lacks a publication that was acknowledged in it.
//! In: publications over the server API, `kill -9` at some of them → out: histories of the next process.
//! Uses the binary, and a folder of the test's own.
//! Changed here: how many rounds there are. `FANWIRE_KILL_ROUNDS=100` makes a hundred.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::fanwire;
use super::started::process::{Folder, Process};
use crate::serve::request;

/// Executes a command of the server API.
fn call(address: &str, method: &str, body: &Value) -> Value {
    let body = body.to_string();
    let text = format!(
        "POST /api/{method} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: key\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = request(address, &text);
    let (_, json) = answer.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str::<Value>(json).expect("JSON")["result"].clone()
}

#[test]
fn a_process_that_is_killed_leaves_no_epoch_without_its_newest_publication() {
    let folder = Folder::new("killed");
    let path = format!("--engine.memory.snapshot_path={}/snapshot", folder.path());
    let flags = [
        &*path,
        "--http_server.address=127.0.0.1",
        "--http_server.port=0",
        "--shards=1",
        "--engine.memory.snapshot_interval=1s",
        "--http_api.key=key",
        "--channel.without_namespace.history_size=10",
        "--channel.without_namespace.history_ttl=600s",
    ];
    let rounds =
        std::env::var("FANWIRE_KILL_ROUNDS").map_or(4, |text| text.parse().expect("a number"));
    // The newest offset that was acknowledged, by channel and epoch.
    let mut acknowledged: HashMap<(String, String), u64> = HashMap::new();
    for round in 0..rounds {
        let node = Process::serve(fanwire().arg("serve").args(flags));
        let address = node.address.as_str();
        for channel in 0..100 {
            let channel = format!("news{channel}");
            let history = call(address, "history", &json!({"channel": channel, "limit": 10}));
            let epoch = history["epoch"].as_str().expect("an epoch").to_owned();
            let offset = history["offset"].as_u64().unwrap_or(0);
            let known = acknowledged.get(&(channel.clone(), epoch)).copied().unwrap_or(0);
            assert!(offset >= known, "round {round}: {channel} {history} < {known}");
        }
        for number in 0..150 + 173 * (round % 5) {
            let channel = format!("news{}", (number * 7 + round) % 90);
            let body = json!({"channel": channel, "data": {"number": number}});
            let published = call(address, "publish", &body);
            let epoch = published["epoch"].as_str().expect("an epoch").to_owned();
            let offset = published["offset"].as_u64().expect("an offset");
            acknowledged.insert((channel, epoch), offset);
        }
        assert_eq!(node.stop("-KILL"), None, "the signal ended it");
    }
}
