//! Processes that are killed, with `engine.memory.snapshot_path`: no epoch lacks a publication that was acknowledged in it. Full disks.
//! In: calls of the server API, `kill -9` at some of them, a limit of files → out: histories and blocks of the next process, log lines.
//! Uses the binary, `sh`, which sets the limit, and a folder of the test's own.
//! Changed here: how many rounds there are. `FANWIRE_KILL_ROUNDS=100` makes a hundred.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use fanwire_testing::{Folder, wait_for};
use serde_json::{Value, json};

use super::fanwire;
use super::started::process::Process;
use crate::serve::request;

/// Executes a command of the server API and returns its result, or null.
fn call(address: &str, method: &str, body: &Value) -> Value {
    reply(address, method, body)["result"].clone()
}

fn reply(address: &str, method: &str, body: &Value) -> Value {
    let body = body.to_string();
    let text = format!(
        "POST /api/{method} HTTP/1.1\r\nHost: {address}\r\nX-API-Key: key\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = request(address, &text);
    let (_, json) = answer.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn a_process_that_is_killed_leaves_no_epoch_without_its_newest_publication() {
    let folder = Folder::new("killed");
    let path = snapshot_in(folder.path());
    let flags = [&[&*path][..], &FLAGS].concat();
    let rounds =
        std::env::var("FANWIRE_KILL_ROUNDS").map_or(4, |text| text.parse().expect("a number"));
    // The newest offset that was acknowledged, by channel and epoch.
    let mut acknowledged: HashMap<(String, String), u64> = HashMap::new();
    for round in 0..rounds {
        let node = Process::serve(fanwire().arg("serve").args(&flags));
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

#[test]
fn on_a_full_disk_the_server_goes_on_and_what_it_answered_outlives_it() {
    let folder = Folder::new("full disk");
    let path = snapshot_in(folder.path());
    let flags = [&[&*path][..], &FLAGS].concat();
    // No file may become longer than a few KiB. `cat` begins before the limit.
    let script = format!(
        "cd '{}'; mkfifo lines; cat lines > log & trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\" 2> lines",
        folder.path()
    );
    let mut command = Command::new("sh");
    command.env_clear().args(["-c", &script, env!("CARGO_BIN_EXE_fanwire"), "serve"]).args(&flags);
    let node = Process::serve(&mut command);
    let mut saved = 0;
    for number in 0..200 {
        let block = reply(&node.address, "block_user", &json!({"user": format!("user{number}")}));
        match block["error"]["code"].as_u64() {
            None => saved += 1,
            Some(code) => assert_eq!(code, 100, "{block}"),
        }
        let body = json!({"channel": format!("news{number}"), "data": "x".repeat(500)});
        assert_eq!(call(&node.address, "publish", &body)["offset"], 1, "it serves");
    }
    assert!((1..200).contains(&saved), "{saved} blocks fit");
    for (file, error) in
        [("snapshot.revocations", "cannot be saved"), ("snapshot", "could not be written")]
    {
        let file = format!("{}/{file}", folder.path());
        let has_line = || {
            let log = std::fs::read_to_string(format!("{}/log", folder.path())).unwrap_or_default();
            log.lines().any(|line| line.contains(error) && line.contains(&file))
        };
        wait_for(has_line, LIMIT);
    }
    assert_eq!(node.stop("-KILL"), None, "the signal ended it");

    let node = Process::serve(fanwire().arg("serve").args(&flags));
    let metrics =
        request(&node.address, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("fanwire_revocations{table=\"blocked\"} "));
    let blocked: u64 = line.expect("the metric").parse().expect("a number");
    assert!(blocked >= saved, "{blocked} of {saved}");
}

#[test]
fn without_a_folder_that_can_be_written_the_server_goes_on_and_says_so() {
    // No user can make files there.
    let flags = [&["--engine.memory.snapshot_path=/sys/fanwire-snapshot"][..], &FLAGS].concat();
    let folder = Folder::new("read-only");
    let log = format!("{}/log", folder.path());
    let node = Process::serve(fanwire().arg("serve").args(&flags).arg(format!("--log.file={log}")));
    let block = call(&node.address, "block_user", &json!({"user": "ada"}));
    assert_eq!(block["forgotten_at_restart"], true, "{block}");
    let has_line = || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("/sys/fanwire-snapshot")
    };
    wait_for(has_line, LIMIT);
}

fn snapshot_in(folder: &str) -> String {
    format!("--engine.memory.snapshot_path={folder}/snapshot")
}

const FLAGS: [&str; 8] = [
    "--http_server.address=127.0.0.1",
    "--http_server.port=0",
    "--shards=1",
    "--engine.memory.snapshot_interval=1s",
    "--http_api.key=key",
    "--prometheus.enabled=true",
    "--channel.without_namespace.history_size=10",
    "--channel.without_namespace.history_ttl=600s",
];

const LIMIT: Duration = Duration::from_secs(20);
