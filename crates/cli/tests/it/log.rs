//! `fanwire log`: what happened to a user, after the server has stopped; and folders that cannot be used.
//! In: clients of a started server, its files → out: lines of the command, errors of the start.
//! Uses the built `fanwire`. Never: the flight recorder in memory, which is tested in `fanwire-node`.
//! Changed here: tests of the command's promises. The form of its lines is tested in `src/log/tests.rs`.

use std::os::unix::fs::PermissionsExt as _;

use fanwire_testing::Folder;
use serde_json::json;

use super::started::chat_client::ChatClient;
use super::started::process::Process;
use super::{fanwire, run};

#[test]
fn the_log_of_a_user_is_read_after_the_server_has_stopped() {
    let folder = Folder::new("log");
    let path = format!("{}/var/logs", folder.path());
    let text = format!("{CONFIG}recorder: {{path: {path}}}\n");
    let config = folder.write("fanwire.yaml", &text);
    for start in 1..=2 {
        let node = Process::serve(fanwire().args(["serve", "--config", &config]));
        refused_connect(&node, "42");
        let mut ended = connect(&node, "42");
        ended.ask("subscribe", &json!({ "channel": format!("news-{start}") }));
        drop(ended);
        let _other = connect(&node, "43");
        let _open_until_the_stop = connect(&node, "44");
        assert_eq!(node.stop("-TERM"), Some(0));
    }
    let (code, lines, errors) = run(&["log", "42", "--at", &now(), "--config", &config]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let words = ["connect", "subscribe", "close"];
    let events = lines.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').nth(1));
    assert_eq!(events.collect::<Vec<_>>(), [words, words].concat(), "{lines}");
    let newest = lines.find("channel=\"news-2\"").expect(&lines);
    assert!(newest < lines.find("channel=\"news-1\"").expect(&lines), "{lines}");
    assert!(lines.contains("user=\"42\"") && lines.contains("address=\"127.0.0.1\""), "{lines}");
    assert!(!lines.contains("\"43\"") && !lines.contains("\"44\""), "{lines}");

    let client = lines.split_once("client=\"").and_then(|(_, rest)| rest.split_once('"'));
    let client = client.expect(&lines).0;
    let (code, lines, _) = run(&["log", "--client", client, "--path", &path]);
    assert_eq!((code, lines.matches("transport=").count()), (0, 1), "{lines}");
    let (code, lines, _) = run(&["log", "44", "--path", &path]);
    let stopped = "close cause=\"the server stops\" code=3001";
    assert_eq!((code, lines.matches(stopped).count()), (0, 2), "{lines}");
    let (code, _, error) = run(&["log", "42", "--at", "2001-01-01T03:12", "--path", &path]);
    assert!(code == 1 && error.contains("has no log of such a connection"), "{error}");

    let file = format!("{path}/connections.0.fwlog");
    let permissions = std::fs::metadata(&file).expect("it was made").permissions();
    assert_eq!(permissions.mode() & 0o777, 0o600);
    let mut bytes = std::fs::read(&file).expect("readable");
    bytes.extend(b"torn");
    std::fs::write(&file, bytes).expect("writable");
    let (code, _, error) = run(&["log", "42", "--path", &path]);
    assert!(
        code == 0 && error.contains("fanwire: 4 damaged bytes of connections.0.fwlog"),
        "{error}"
    );
}

#[test]
fn a_folder_that_cannot_be_used_ends_the_start_with_a_sentence() {
    let folder = Folder::new("log-unusable");
    let file = folder.write("a-file", "");
    for path in [file.as_str(), "/proc/logs"] {
        let flags = ["--http_server.port", "0", "--recorder.path", path];
        let (code, _, error) = run(&[&["serve"][..], &flags].concat());
        let sentence = format!("fanwire: recorder.path is {path:?}, which cannot be used (");
        assert!(code == 1 && error.contains(&sentence), "{code} {error}");
        assert!(error.contains("use a folder in which this process may create files"), "{error}");
    }
    let (code, _, error) = run(&["log", "42", "--path", &file]);
    assert!(code == 1 && error.contains("cannot be read"), "{error}");
    let (code, _, error) = run(&["log", "42"]);
    assert!(code == 1 && error.contains("(recorder.path, or --path) has no log"), "{error}");
    assert_eq!(run(&["log"]).0, 2);
}

fn connect(node: &Process, user: &str) -> ChatClient {
    let (_, token, _) = run(&["token", "--user", user, "--secret", SECRET]);
    let mut client = ChatClient::open(&node.address, ORIGIN);
    client.ask("connect", &json!({ "token": token.trim(), "name": "test" }));
    client
}

/// A client whose token another secret has signed. Anybody can cause any number of these, so files have none.
fn refused_connect(node: &Process, user: &str) {
    let (_, token, _) =
        run(&["token", "--user", user, "--secret", "another-secret-with-at-least-32-bytes"]);
    let mut client = ChatClient::open(&node.address, ORIGIN);
    client.send(&json!({ "id": 1, "connect": { "token": token.trim() } }).to_string());
    client.frame();
}

/// Hour, minute and second in UTC.
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = since.expect("a clock").as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

const ORIGIN: &str = "https://app.example.com";
const SECRET: &str = "a-secret-of-this-test-with-32-bytes";
const CONFIG: &str = "
http_server: {address: 127.0.0.1, port: 0}
shutdown: {timeout: 1s}
client:
  token: {hmac_secret_key: a-secret-of-this-test-with-32-bytes}
  allowed_origins: [\"https://app.example.com\"]
channel: {without_namespace: {allow_subscribe_for_client: true}}
";
