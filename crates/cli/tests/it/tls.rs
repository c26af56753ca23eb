//! TLS as an operator sees it: check-config, SIGHUP with new and broken files, lines of the log.
//! In: certificates in files, signals → out: exit codes, lines of stdout and of the log.
//! Uses the built `fanwire` and the certificates of the repository; `publish` and `bench` are the clients.
//! Handshakes are tested in `fanwire`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

use fanwire_testing::Folder;
use serde_json::json;

use super::fanwire;
use super::started::PATIENCE;
use super::started::process::Process;

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
    let last = out.lines().last().expect("a line");
    assert!(code == Some(1) && last.starts_with(&expected), "{out}");
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

#[test]
fn publish_and_bench_verify_the_certificate_of_the_server() {
    let (folder, path) = folder("tls-clients");
    let process = Process::serve(fanwire().args([
        "serve",
        "--shards=1",
        "--config",
        &path,
        "--http_api.key=k",
        "--channel.without_namespace.allow_subscribe_for_client=true",
    ]));
    let port = process.address.rsplit_once(':').expect("a port").1;
    let (ca, api) = (format!("{KEYS}ca.pem"), format!("https://localhost:{port}/api"));
    let client = |arguments: &[&str], more: &[&str]| crate::run(&[arguments, more].concat());

    let publish = ["publish", "demo", "1", "--key=k", "--url", &api];
    for more in [&["--ca", &ca][..], &["--insecure"]] {
        let (code, out, error) = client(&publish, more);
        assert!(code == 0 && out.starts_with("published 1 of 1 in "), "{more:?}: {out}{error}");
    }
    let clients = format!("wss://127.0.0.1:{port}/connection/websocket");
    let bench = ["bench", "--key=k", "--url", &clients, "--api-url", &api];
    let short = ["--warm-up=0", "--duration=500ms", "--connections=5", "--ca", &ca];
    for more in ["--publish=api", "--publish=batch", "--publish=stream"] {
        let (code, out, error) = client(&bench, &[&short[..], &[more]].concat());
        assert!(code == 0 && out.contains(&format!("server      {clients} (")), "{out}{error}");
        assert!(out.contains("every publication arrived once, in order, intact"), "{out}{error}");
    }

    // The address is that of the configuration, and the certificate has its own authority and another name.
    let own = folder.write("own.json", &fs::read_to_string(&path).expect("text"));
    let port = format!("FANWIRE_HTTP_SERVER_PORT={port}");
    let (name, value) = port.split_once('=').expect("a variable");
    let of_configuration = |arguments: &[&str]| {
        let output = fanwire().args(arguments).args(["--config", &own]).env(name, value).output();
        let output = output.expect("the binary runs");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let (code, error) = of_configuration(&["publish", "demo", "1", "--key=k"]);
    assert!(code == Some(0), "{error}");
    let (code, error) = of_configuration(&[&["bench", "--key=k"][..], &short[..3]].concat());
    assert!(code == Some(0), "{error}");
    folder.write("localhost.pem", &fs::read_to_string(&ca).expect("a certificate"));
    let (code, error) = of_configuration(&["publish", "demo", "1", "--key=k"]);
    assert!(code == Some(1) && error.contains("it is not the configuration's: reload"), "{error}");

    let key = format!("{KEYS}localhost.private.pem");
    let unknown = "UnknownIssuer; give --ca with the file of the authority";
    for (more, part) in [
        (&[][..], unknown),
        (&["--ca", "/nowhere.pem"], "--ca: \"/nowhere.pem\" cannot be read (No such file"),
        (&["--ca", &key], "--ca: it contains no certificate, expected a PEM file"),
    ] {
        let (code, _, error) = client(&publish, more);
        assert!(code == 1 && error.contains(part), "{more:?}: {error}");
        let (code, _, error) = client(&bench, more);
        assert!(code == 2 && error.contains(part), "{more:?}: {error}");
    }
    let (code, _, error) = client(&bench[..4], &["--publish=client"]);
    assert!(code == 2 && error.contains(unknown), "{error}");
    assert_eq!(process.stop("-TERM"), Some(0));
}

#[test]
fn https_to_a_plain_port_and_http_to_a_port_with_tls_are_named() {
    let (_folder, path) = folder("tls-schemes");
    let secure = Process::serve(fanwire().args(["serve", "--shards=1", "--config", &path]));
    let options = ["serve", "--shards=1", "--http_server.port=0"];
    let plain = Process::serve(fanwire().args(options));
    let port = |process: &Process| process.address.rsplit_once(':').expect("a port").1.to_owned();
    let url = format!("https://127.0.0.1:{}/api", port(&plain));
    let (code, _, error) = crate::run(&["publish", "a", "1", "--url", &url]);
    assert!(code == 1 && error.contains("the server speaks no TLS at this port"), "{error}");
    let url = format!("wss://127.0.0.1:{}/", port(&plain));
    let (code, _, error) = crate::run(&["bench", "--publish=client", "--url", &url]);
    assert!(code == 2 && error.contains("the server speaks no TLS at this port"), "{error}");
    let url = format!("http://127.0.0.1:{}/api", port(&secure));
    let (code, _, error) = crate::run(&["publish", "a", "1", "--url", &url]);
    assert!(
        code == 1 && error.contains("The plain HTTP request was sent to HTTPS port"),
        "{error}"
    );
    assert_eq!([plain.stop("-TERM"), secure.stop("-TERM")], [Some(0); 2]);
}
