//! TLS as an operator sees it: check-config, SIGHUP with new and broken files, lines of the log.
//! In: certificates in files, signals → out: exit codes, lines of stdout and of the log.
//! Uses the built `fanwire` and the certificates of the repository. Never: a client that speaks TLS.
//! Handshakes are tested in `fanwire`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use super::fanwire;
use super::started::PATIENCE;
use super::started::process::{Folder, Process};

const KEYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/keys/");

/// A folder with a configuration, the certificate and its key.
fn folder(name: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    let copy = |file: &str| {
        folder.write(file, &fs::read_to_string(format!("{KEYS}{file}")).expect("a key"))
    };
    let config = json!({
        "client": {"insecure": true},
        "http_server": {"address": "127.0.0.1", "port": 0, "tls": {
            "enabled": true,
            "cert_pem": copy("localhost.pem"),
            "key_pem": copy("localhost.private.pem"),
        }},
        "log": {"file": format!("{}/fanwire.log", folder.path())},
    });
    let path = folder.write("fanwire.json", &config.to_string());
    (folder, path)
}

fn run(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("the binary runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

/// The next line of the log that contains `text`.
fn logged(log: &mut BufReader<fs::File>, text: &str) -> String {
    let (until, mut line) = (Instant::now() + PATIENCE, String::new());
    loop {
        match log.read_line(&mut line).expect("text") {
            0 => {}
            _ if !line.ends_with('\n') => continue,
            _ if line.contains(text) => return line,
            _ => line.clear(),
        }
        assert!(Instant::now() < until, "not logged: {text}");
    }
}

#[test]
fn check_config_finds_wrong_files_and_warns_of_a_chain_out_of_order() {
    let (folder, path) = folder("tls-check");
    assert_eq!(run(fanwire().args(["check-config", &path])), (Some(0), warned(&path, "")));
    let own = fs::read_to_string(format!("{KEYS}localhost.pem")).expect("a certificate");
    folder.write("localhost.pem", &(own.clone() + &own));
    let order = format!(
        "warning: {path}: http_server.tls.cert_pem: the certificates are not in order, and some clients refuse them; \
         expected the server's own one first, then the one that signed it, and so on\n"
    );
    assert_eq!(run(fanwire().args(["check-config", &path])), (Some(0), warned(&path, &order)));
    folder.write("localhost.private.pem", &own);
    let (code, out) = run(fanwire().args(["check-config", &path]));
    let expected =
        format!("error: {path}: http_server.tls.key_pem: it contains no private key, expected PEM");
    assert!(code == Some(1) && out.starts_with(&expected), "{out}");
}

/// The output of check-config for a configuration that opens everything, with one more line.
fn warned(path: &str, line: &str) -> String {
    let insecure = format!(
        "warning: {path}: client.insecure is true, so anybody who reaches this server may do anything; for development only\n"
    );
    let count = 1 + usize::from(!line.is_empty());
    let plural = if count == 1 { "warning" } else { "warnings" };
    format!("{line}{insecure}{path}: the server would start, with {count} {plural}\n")
}

#[test]
fn sighup_replaces_certificates_and_a_broken_file_changes_nothing() {
    let (folder, path) = folder("tls-reload");
    let process = Process::serve(fanwire().args(["serve", "--shards=1", "--config", &path]));
    let log = fs::File::open(format!("{}/fanwire.log", folder.path())).expect("it logs");
    let mut log = BufReader::new(log);

    let key = fs::read_to_string(format!("{KEYS}localhost.private.pem")).expect("a key");
    folder.write("localhost.private.pem", "");
    process.send("-HUP");
    let line = logged(&mut log, "was not reloaded");
    assert!(line.contains("http_server.tls.key_pem: it contains no private key"), "{line}");

    let read = |file: &str| fs::read_to_string(format!("{KEYS}{file}")).expect("a certificate");
    folder.write("localhost.private.pem", &key);
    folder.write("localhost.pem", &(read("localhost.pem") + &read("ca.pem")));
    process.send("-HUP");
    let line = logged(&mut log, "replaced the certificate");
    assert!(line.contains("\"key\":\"http_server.tls\"") && line.contains("2126-10-28"), "{line}");
    logged(&mut log, "configuration reloaded");
    assert_eq!(process.stop("-TERM"), Some(0));
}

#[test]
fn failed_handshakes_are_logged_once_a_minute_and_plain_requests_answered() {
    let (folder, path) = folder("tls-refused");
    let process = Process::serve(fanwire().args(["serve", "--shards=1", "--config", &path]));
    let log = fs::File::open(format!("{}/fanwire.log", folder.path())).expect("it logs");
    let mut log = BufReader::new(log);
    for _ in 0..2 {
        let mut socket = TcpStream::connect(&process.address).expect("it listens");
        socket.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is open");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.ends_with("The plain HTTP request was sent to HTTPS port\n"), "{answer}");
    }
    let mut socket = TcpStream::connect(&process.address).expect("it listens");
    socket.write_all(b"\x80garbage").expect("it is open");
    let line = logged(&mut log, "a TLS handshake failed");
    for part in [
        "\"cause\":\"the client speaks HTTP without TLS\"",
        "\"count\":1",
        "\"address\":\"127.0.0.1:",
    ] {
        assert!(line.contains(part), "{line}");
    }
    let line = logged(&mut log, "a TLS handshake failed");
    assert!(line.contains("received corrupt message"), "the second request has no line: {line}");
    assert_eq!(process.stop("-TERM"), Some(0));
}
