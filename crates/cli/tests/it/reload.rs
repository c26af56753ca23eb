//! Tests of SIGHUP: what takes effect, what is only named, and what a broken file changes.
//! In: a configuration file, changed while the server runs → out: log lines, responses, pushes.
//! Uses the built `fanwire`, loopback sockets and `kill`. Never: fixed ports, waiting by the clock.
//! Which keys can change is tested in `fanwire-config`, the effect on sessions in `fanwire-node`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Instant;

use fanwire_testing::Folder;
use serde_json::{Value, json};

use super::fanwire;
use super::started::chat_client::{ChatClient, handshake};
use super::started::process::Process;
use super::started::{PATIENCE, api};

struct Server {
    folder: Folder,
    process: Process,
    log: BufReader<File>,
}

impl Server {
    fn start(name: &str, config: &Value) -> Self {
        let folder = Folder::new(name);
        let mut config = config.clone();
        config["log"]["file"] = format!("{}/fanwire.log", folder.path()).into();
        config["http_server"] = json!({"address": "127.0.0.1", "port": 0});
        let path = folder.write("fanwire.json", &config.to_string());
        let process = Process::serve(fanwire().args(["serve", "--shards=1", "--config", &path]));
        let log = File::open(format!("{}/fanwire.log", folder.path())).expect("it logs");
        Self { folder, process, log: BufReader::new(log) }
    }

    /// Replaces the whole file at once, as a reload may read it at any time.
    fn write(&self, config: &str) {
        let new = self.folder.write("new.json", config);
        std::fs::rename(new, format!("{}/fanwire.json", self.folder.path())).expect("it is there");
    }

    fn hang_up(&self) {
        self.process.send("-HUP");
    }

    /// The next line of the log that contains `text`; `work` runs while there is none.
    fn logged(&mut self, text: &str, mut work: impl FnMut()) -> String {
        let (until, mut line) = (Instant::now() + PATIENCE, String::new());
        loop {
            match self.log.read_line(&mut line).expect("text") {
                0 => work(),
                _ if !line.ends_with('\n') => continue,
                _ if line.contains(text) => return line,
                _ => line.clear(),
            }
            assert!(Instant::now() < until, "not logged: {text}");
        }
    }
}

fn config(origin: &str, key: &str) -> Value {
    json!({
        "client": {
            "allowed_origins": [origin],
            "allow_anonymous_connect_without_token": true,
            "ping_interval": "1h",
        },
        "channel": {"without_namespace": {
            "allow_subscribe_for_client": true, "allow_subscribe_for_anonymous": true,
        }},
        "http_api": {"key": key},
    })
}

#[test]
fn new_values_take_effect_and_others_are_named() {
    let mut server = Server::start("reload", &config(OLD, "old-key"));
    let address = server.process.address.clone();
    let mut client = ChatClient::open(&address, OLD);
    client.ask("connect", &json!({}));
    client.ask("subscribe", &json!({"channel": "news"}));

    let mut changed = config(NEW, "new-key");
    changed["shutdown"]["timeout"] = "7s".into();
    changed["log"] = json!({"level": "debug"});
    server.write(&changed.to_string());
    server.hang_up();
    let line = server.logged("configuration reloaded", || {});
    assert!(line.contains("client.allowed_origins, http_api.key, log.level"), "{line}");
    assert!(!line.contains("new-key") && !line.contains("shutdown"), "{line}");
    let line = server.logged("need a restart", || {});
    assert!(line.contains("shutdown.timeout") && line.contains("log.file"), "{line}");
    assert_eq!((handshake(&address, OLD).0, handshake(&address, NEW).0), (403, 101));
    assert_eq!(api(&address, "old-key", "news", "no").0, 401);
    assert_eq!(api(&address, "new-key", "news", "yes").0, 200);
    client.pushed("news", |push| push["pub"]["data"] == "yes");
    assert_eq!(server.process.stop("-TERM"), Some(0));
}

#[test]
fn a_broken_file_changes_nothing_and_the_log_says_why() {
    let mut server = Server::start("broken", &config(OLD, "old-key"));
    let address = server.process.address.clone();
    let mut broken = config(NEW, "new-key");
    broken["client"]["channel_limit"] = "many".into();
    for (text, reason) in [
        (broken.to_string(), "client.channel_limit is \\\"many\\\""),
        ("{".to_owned(), "fanwire.json"),
    ] {
        server.write(&text);
        server.hang_up();
        let line = server.logged("was not reloaded", || {});
        assert!(line.contains(reason) && !line.contains("new-key"), "{line}");
    }
    assert_eq!((handshake(&address, OLD).0, handshake(&address, NEW).0), (101, 403));
    assert_eq!(api(&address, "old-key", "news", "yes").0, 200);
    assert_eq!(server.process.stop("-TERM"), Some(0));
}

/// Every publication waits for its push, and every signal for the end of its reload.
#[test]
fn a_thousand_reloads_under_load_lose_nothing_and_leave_no_memory() {
    let mut first = config(OLD, "key");
    let mut second = first.clone();
    first["channel"]["namespaces"] = json!([{"name": "chat"}, {"name": "first"}]);
    second["channel"]["namespaces"] = json!([{"name": "second", "presence": true}]);
    second["client"]["channel_limit"] = 7.into();
    let mut server = Server::start("thousand", &first);
    let address = server.process.address.clone();
    let mut client = ChatClient::open(&address, OLD);
    client.ask("connect", &json!({}));
    client.ask("subscribe", &json!({"channel": "news"}));
    let mut number = 0;
    let mut publish = || {
        number += 1;
        let data = number.to_string();
        assert_eq!(api(&address, "key", "news", &data).0, 200);
        client.pushed("news", |push| {
            assert_eq!(push["pub"]["data"], *data, "the next one");
            true
        });
    };
    let configs = [second.to_string(), first.to_string()];
    let mut resident = Vec::new();
    for round in 0..1000 {
        server.write(&configs[round % 2]);
        server.hang_up();
        server.logged("configuration reloaded: c", &mut publish);
        if round % 200 == 199 {
            resident.push(server.process.resident_bytes());
        }
    }
    // The allocator takes memory from the system in large steps; a leak is in every window of 200 reloads.
    let growths = resident.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
    assert!(growths.min() < Some(200 << 10), "resident after each 200 reloads: {resident:?}");
    publish();
    assert_eq!(server.process.stop("-TERM"), Some(0));
    assert!(number >= 100, "{number} publications are no load");
}

const OLD: &str = "https://old.example.com";
const NEW: &str = "https://new.example.com";
