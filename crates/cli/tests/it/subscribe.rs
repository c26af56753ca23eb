//! `fanwire subscribe` with a running server: publications, a signal, a wrong token, no server.
//! In: arguments, publications of the command `publish`, signals → out: lines, exit codes, stderr.
//! Uses the binary on both sides. Never: fixed ports.
//! The form of a line is tested next to the command.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use serde_json::Value;

use super::serve::{send, start, stop};
use super::{fanwire, run};

#[test]
fn publications_are_printed_until_a_signal_comes() {
    let (server, lines) = start(&[]);
    let address = lines[0].rsplit(' ').next().expect("the address ends the line");
    let key = lines.iter().find_map(|line| line.trim_start().strip_prefix("API key "));
    let key = key.and_then(|rest| rest.split_whitespace().next()).expect("a key was made");
    let api = format!("http://{address}/api");
    let url = format!("ws://{address}");
    for signal in ["-INT", "-TERM"] {
        let mut child = subscribe(&["demo", "--url", &url, "--json"]);
        let mut notes = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
        let note = notes.next().expect("a line").expect("text");
        assert!(note.starts_with("fanwire: subscribed to demo"), "{note}");
        let published = run(&["publish", "--url", &api, "--key", key, "demo", r#"{"n":1}"#]);
        assert_eq!(published.0, 0, "{published:?}");
        let mut out = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        let line = out.next().expect("a line").expect("text");
        let value: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(value["data"]["n"], 1, "{line}");
        assert!(value["wire_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{line}");
        send(signal, &child);
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        assert!(out.next().is_none() && notes.next().is_none());
    }

    let mut child = subscribe(&["demo", "--url", &url, "--recover"]);
    let mut out = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
    let mut notes = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
    notes.next().expect("a line").expect("text");
    run(&["publish", "--url", &api, "--key", key, "demo", r#"{"n":2}"#]);
    let last = out.find(|line| line.as_ref().is_ok_and(|line| line.ends_with(r#"{"n":2}"#)));
    assert!(last.is_some());
    drop(out);
    // Its next line finds no reader.
    run(&["publish", "--url", &api, "--key", key, "demo", r#"{"n":3}"#]);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));

    let (code, out, error) = run(&["subscribe", "demo", "--url", &url, "--token", "wrong"]);
    assert_eq!((code, out.as_str()), (1, ""));
    let expect = "fanwire: the server refuses the connection: ";
    assert!(error.starts_with(expect) && error.contains("invalid token"), "{error}");
    assert!(error.ends_with("(3500); `fanwire token` prints one for --token\n"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    let (code, _, error) = run(&["subscribe", "demo", "unknown:a", "--url", &url]);
    let refused = "fanwire: the server refuses the channel unknown:a: unknown channel (102)\n";
    assert!(code == 1 && error.ends_with(refused), "{error}");
    let other = format!("{url}/other");
    let (code, _, error) = run(&["subscribe", "demo", "--url", &other]);
    assert!(code == 1 && error.contains("HTTP status 404; check --url"), "{error}");

    assert_eq!(stop(server), Some(0));
    let (code, _, error) = run(&["subscribe", "demo", "--url", &url]);
    let expect = format!("fanwire: no server answers at {url}/connection/websocket: ");
    assert!(code == 1 && error.starts_with(&expect), "{error}");
    let (code, _, error) = run(&["subscribe", "demo", "--url", "http://localhost"]);
    assert!(code == 1 && error.contains("begins with ws:// or wss://"), "{error}");
    assert_eq!(run(&["subscribe"]).0, 2);
}

#[test]
fn after_the_end_of_a_server_the_command_waits_for_it() {
    let (server, lines) = start(&[]);
    let address = lines[0].rsplit(' ').next().expect("the address ends the line");
    let mut child = subscribe(&["demo", "--url", &format!("ws://{address}")]);
    let mut notes = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
    notes.next().expect("a line").expect("text");
    assert_eq!(stop(server), Some(0));
    let lost = notes.next().expect("a line").expect("text");
    assert!(lost.starts_with("fanwire: connection lost: shutdown (3001); "), "{lost}");
    send("-INT", &child);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let mut out = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    assert_eq!(out, "");
}

fn subscribe(arguments: &[&str]) -> Child {
    let mut command = fanwire();
    command.arg("subscribe").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary runs")
}
