//! Tests of the running binary: start, first request, stop.
//! In: flags, one HTTP request, a signal → out: the text at the start, a response, exit code 0.
//! Uses loopback sockets and `kill`. Never: fixed ports, waiting by the clock.
//! Start and stop are tested here; the server's behaviour in its own crate.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{fanwire, file, run};
use crate::started::process::Process;

/// Starts on a port that the system chooses and reads the text at the start up to its last line, the command that publishes.
pub(crate) fn start(flags: &[&str]) -> (Child, Vec<String>) {
    start_with(flags, Stdio::null())
}

fn start_with(flags: &[&str], stderr: Stdio) -> (Child, Vec<String>) {
    let mut command = fanwire();
    command.args(["--http_server.port=0", "--shards=1", "--shutdown.timeout=1s"]).args(flags);
    let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the binary runs");
    let out = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let mut lines = Vec::new();
    for line in out.lines() {
        lines.push(line.expect("a line of text"));
        if lines.last().is_some_and(|line| line.contains("curl")) {
            break;
        }
    }
    (child, lines)
}

pub(crate) fn send(signal: &str, child: &Child) {
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
}

pub(crate) fn stop(mut child: Child) -> Option<i32> {
    send("-TERM", &child);
    child.wait().expect("the server ends").code()
}

pub(crate) fn request(address: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
    stream.write_all(text.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers and closes");
    answer
}

/// Longer than any answer takes on a busy machine, and shorter than sockets are kept.
const PATIENCE: Duration = Duration::from_secs(25);

/// The status of the answer to a request without a body.
pub(crate) fn status(address: &str, method: &str, path: &str) -> u16 {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    request(address, &head)[9..12].parse().expect("a status")
}

#[test]
fn without_configuration_it_serves_the_demo_accepts_a_publication_and_stops_on_sigterm() {
    let (child, lines) = start(&[]);
    let address = lines[0].rsplit(' ').next().expect("the address ends the line");
    assert!(address.starts_with("127.0.0.1:"), "{lines:?}");
    let key = lines
        .iter()
        .find_map(|line| line.trim_start().strip_prefix("API key "))
        .and_then(|rest| rest.split_whitespace().next())
        .expect("a key was made");

    let page = request(address, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");

    let body = r#"{"channel":"demo","data":{}}"#;
    let answer = request(
        address,
        &format!(
            "POST /api/publish HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    assert!(answer.ends_with(r#"{"result":{}}"#), "{answer}");
    assert_eq!(stop(child), Some(0));
}

#[test]
fn a_pid_file_exists_while_the_server_runs() {
    let path = file("fanwire.pid", "1\n");
    let (child, _) = start(&["--pid_file", &path]);
    let written = std::fs::read_to_string(&path).expect("it is there");
    assert_eq!(written, format!("{}\n", child.id()));
    assert_eq!(stop(child), Some(0));
    assert!(!std::path::Path::new(&path).exists());
}

/// The port is in use; that error would come first if the server had tried to listen.
#[test]
fn a_pid_file_that_cannot_be_written_is_named_before_anything_listens() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let path = format!("{}/nowhere/fanwire.pid", env!("CARGO_TARGET_TMPDIR"));
    let (code, _, error) = run(&["--http_server.port", &port, "--pid_file", &path]);
    assert_eq!(code, 1);
    assert!(error.contains("pid_file") && error.contains(&path), "{error}");
}

#[test]
fn a_start_that_fails_keeps_the_pid_file_of_another_server() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let path = file("other.pid", "1\n");
    assert_eq!(run(&["--http_server.port", &port, "--pid_file", &path]).0, 1);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "1\n");
}

#[test]
fn an_unreachable_redis_at_the_start_is_logged_once() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    drop(taken);
    let mut command = fanwire();
    command.args(["--http_server.port=0", "--shards=1", "--shutdown.timeout=1s"]);
    command.args(["--engine.type=redis", "--engine.redis.address", &address]);
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let log = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
    let mut lines = log.lines().map(|line| line.expect("a line of text"));
    let mut found = Vec::new();
    // Waits for the first error and the last step of the start before it sends the signal.
    while !(found.iter().any(|line: &String| line.contains(&address))
        && found.iter().any(|line| line.contains("listening")))
    {
        found.push(lines.next().expect("the server runs"));
    }
    assert_eq!(stop(child), Some(0));
    found.extend(lines);
    let logged = found.iter().filter(|line| line.contains("cannot be reached")).count();
    assert_eq!(logged, 1, "{found:#?}");
}

/// Returns the first line of the log with this text.
fn logged(child: &mut Child, text: &str) -> String {
    let log = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
    let mut lines = log.lines().map(|line| line.expect("a line of text"));
    lines.find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text} is not logged"))
}

/// 4 MB of publications in 100 channels, where 1 MiB is allowed.
#[test]
fn dropped_histories_are_logged_and_counted() {
    let text = "client: {insecure: true}\nhttp_api: {insecure: true}\nprometheus: {enabled: true}\n\
        channel: {history_memory_max: 1048576, without_namespace: {history_size: 10, history_ttl: 1h}}\n";
    let path = file("dropped.yaml", text);
    let (mut child, lines) = start_with(&["--config", &path], Stdio::piped());
    let address = lines[0].rsplit(' ').next().expect("the address ends the line");
    let data = "x".repeat(40_000);
    for number in 0..100 {
        let body = json!({"channel": format!("news{number}"), "data": data}).to_string();
        let head = "POST /api/publish HTTP/1.1\r\nHost: localhost\r\nConnection: close";
        let length = body.len();
        let answer = request(address, &format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let line = logged(&mut child, "histories are dropped");
    assert!(line.contains("channel.history_memory_max is reached"), "{line}");
    let metrics =
        request(address, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let count = metrics.lines().find(|line| line.starts_with("fanwire_node_history_evictions"));
    let count = count.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    assert!(count.is_some_and(|count| count > 50), "{count:?}");
    assert_eq!(stop(child), Some(0));
}

#[test]
fn an_error_of_the_log_does_not_stop_the_server() {
    let full = || File::options().write(true).open("/dev/full").expect("Linux has it");
    let (reader, closed) = std::io::pipe().expect("a pipe");
    drop(reader);
    for stderr in [Stdio::from(full()), Stdio::from(closed)] {
        let (child, lines) = start_with(&["--log.level=debug"], stderr);
        let address = lines[0].rsplit(' ').next().expect("the address ends the line");
        let page =
            request(address, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
        assert_eq!(stop(child), Some(0));
    }
    let port = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = port.local_addr().expect("an address").port().to_string();
    let mut command = fanwire();
    command.args(["--http_server.port", &taken]).stderr(full());
    assert_eq!(command.status().expect("the binary runs").code(), Some(1));
}

#[test]
fn lines_that_cannot_be_written_to_the_log_file_go_to_stderr() {
    let (mut child, lines) = start_with(&["--log.file=/dev/full"], Stdio::piped());
    let address = lines[0].rsplit(' ').next().expect("the address ends the line");
    let log = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
    let text = Arc::<Mutex<String>>::default();
    let copy = Arc::clone(&text);
    let reader = std::thread::spawn(move || {
        for line in log.lines() {
            *copy.lock().expect("no panic") += &(line.expect("text") + "\n");
        }
    });
    send("-USR1", &child);
    request_until(&mut child, address, || text.lock().expect("no panic").contains("reopened"));
    assert_eq!(stop(child), Some(0));
    reader.join().expect("no panic");
    let lines = text.lock().expect("no panic");
    assert!(lines.lines().all(|line| line.starts_with('{')), "{lines}");
    for message in ["listening", "log.file was reopened", "stopping"] {
        assert!(lines.contains(message), "{message}: {lines}");
    }
}

#[test]
fn sigusr1_and_sighup_reopen_a_rotated_log_file() {
    for signal in ["-USR1", "-HUP"] {
        let path = file(&format!("rotated{signal}.log"), "");
        let (mut child, lines) = start(&["--log.file", &path]);
        let address = lines[0].rsplit(' ').next().expect("the address ends the line");
        let rotated = format!("{path}.1");
        std::fs::rename(&path, &rotated).expect("it is there");
        send(signal, &child);
        request_until(&mut child, address, || path_contains(&path, "was reopened"));
        assert_eq!(stop(child), Some(0));
        let [old, new] = [rotated, path].map(|path| std::fs::read_to_string(path).expect("text"));
        assert!(old.contains("listening") && !old.contains("stopping"), "{signal}: {old}");
        assert!(new.contains("stopping") && !new.contains("listening"), "{signal}: {new}");
    }
}

#[test]
fn a_log_file_that_cannot_be_opened_again_stays_open() {
    // Left by a failed run.
    let _ = std::fs::remove_dir(format!("{}/blocked.log", env!("CARGO_TARGET_TMPDIR")));
    let path = file("blocked.log", "");
    let (mut child, lines) = start(&["--log.file", &path]);
    let address = lines[0].rsplit(' ').next().expect("the address ends the line");
    let rotated = format!("{path}.1");
    std::fs::rename(&path, &rotated).expect("it is there");
    std::fs::create_dir(&path).expect("nothing is there");
    send("-USR1", &child);
    request_until(&mut child, address, || path_contains(&rotated, "stays in use"));
    std::fs::remove_dir(&path).expect("it is there");
    assert_eq!(stop(child), Some(0));
    assert!(path_contains(&rotated, "stopping"));
}

#[test]
fn a_log_file_that_is_a_folder_is_named_with_its_key() {
    let (code, _, error) = run(&["--log.file", env!("CARGO_TARGET_TMPDIR")]);
    assert_eq!(code, 1);
    let expect =
        format!("log.file is {:?}, expected the path of a file", env!("CARGO_TARGET_TMPDIR"));
    assert!(error.contains(&expect), "{error}");
}

#[test]
fn the_log_begins_with_the_file_then_describes_the_server_and_ends_with_its_end() {
    let path = file("start-and-end.log", "");
    let config = file("start-and-end.yaml", "websocket:\n  compression: false\n");
    let (child, lines) =
        start(&["--config", &config, "--http_api.insecure=true", "--log.file", &path]);
    let pid = child.id();
    let address = lines[0].rsplit(' ').next().expect("the address ends the line").to_owned();
    assert_eq!(stop(child), Some(0));
    let log = std::fs::read_to_string(&path).expect("text");
    let parsed: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let line = |message: &str| {
        let found = parsed.iter().find(|line| line["message"] == message);
        found.unwrap_or_else(|| panic!("{message}: {log}"))
    };
    assert_eq!(parsed[0]["message"], format!("the configuration is in {config}"), "{log}");
    let start = line("listening");
    for (name, value) in [
        ("level", json!("info")),
        ("pid", json!(pid)),
        ("config", json!(config)),
        ("engine", json!("memory")),
        ("shards", json!(1)),
        ("compression", json!(false)),
        ("address", json!(address)),
    ] {
        assert_eq!(start[name], value, "{name}: {log}");
    }
    assert!(start["descriptors"].as_u64().is_some_and(|limit| limit > 64), "{log}");
    let end = line("stopped");
    assert_eq!((&end["closed"], &end["left"]), (&json!(0), &json!(0)), "{log}");
    assert!(end["took_ms"].is_u64(), "{log}");
}

#[test]
fn the_format_of_log_lines_can_be_chosen() {
    for (format, begin) in [("json", "{\"time\":\""), ("text", "20")] {
        let path = file(&format!("format-{format}.log"), "");
        let (child, _) = start(&["--log.format", format, "--log.file", &path]);
        assert_eq!(stop(child), Some(0));
        let log = std::fs::read_to_string(&path).expect("text");
        assert!(log.contains("listening"), "{log}");
        assert!(log.lines().all(|line| line.starts_with(begin)), "{log}");
    }
}

fn path_contains(path: &str, text: &str) -> bool {
    std::fs::read_to_string(path).is_ok_and(|lines| lines.contains(text))
}

/// Requests the page of a running server until the effect of a signal is visible.
fn request_until(child: &mut Child, address: &str, is_done: impl Fn() -> bool) {
    let mut requests = 0..REQUESTS_MAX;
    while !is_done() {
        assert!(child.try_wait().expect("a child").is_none(), "the signal ended the server");
        assert!(requests.next().is_some(), "the signal has no effect");
        request(address, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    }
}

#[test]
fn a_port_in_use_is_named_with_key_value_and_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let (code, _, error) = run(&["--http_server.port", &port]);
    assert_eq!(code, 1);
    assert!(error.contains("http_server.port") && error.contains(&port), "{error}");
}

#[test]
fn an_address_that_is_none_is_named_with_its_key() {
    let (code, _, error) = run(&["--http_server.address", "not an address"]);
    assert_eq!(code, 1);
    assert!(error.contains("http_server.address"), "{error}");
}

/// Requests after a signal before a test fails.
const REQUESTS_MAX: usize = 10_000;

/// Descriptors of a process that has some 200 places for HTTP connections.
const FEW_DESCRIPTORS: &str = "ulimit -n 400 && exec \"$@\"";

#[test]
fn sockets_that_clients_keep_leave_room_for_others() {
    let mut command = Command::new("sh");
    command.args(["-c", FEW_DESCRIPTORS, "sh", env!("CARGO_BIN_EXE_fanwire")]);
    command.args([
        "--http_server.port=0",
        "--shards=1",
        "--http_stream.enabled",
        "--http_api.key=k",
    ]);
    command.args(["--health.enabled", "--http_server.address=127.0.0.1"]);
    command.args(["--client.token.hmac_secret_key", "0123456789abcdef0123456789abcdef"]);
    let server = Process::serve(&mut command);
    let address = server.address.trim_start_matches("http://");
    let call = |method: &str, body: &str| {
        let length = body.len();
        let head =
            format!("POST /api/{method} HTTP/1.1\r\nHost: a\r\nX-API-Key: k\r\nConnection: close");
        request(address, &format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}"))
    };
    let info = call("info", "{}");
    let (_, info) = info.split_once("\r\n\r\n").expect("a body");
    let info: Value = serde_json::from_str(info).expect("JSON");
    let node = info["result"]["nodes"][0]["uid"].as_str().expect("an id").to_owned();
    let body = json!({"session": "unknown", "node": node, "data": ""}).to_string();
    let head = "POST /emulation HTTP/1.1\r\nHost: a\r\nContent-Length";
    let emulation = format!("{head}: {}\r\n\r\n{body}", body.len());
    let kept: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut socket = TcpStream::connect(address).expect("the accept queue has room");
            socket.write_all(emulation.as_bytes()).expect("room in the socket");
            socket
        })
        .collect();

    assert_eq!(status(address, "GET", "/health"), 200);
    assert!(call("publish", r#"{"channel":"a","data":1}"#).contains("\"result\":{}"));
    let upgrade = "GET /connection/websocket HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let mut socket = TcpStream::connect(address).expect("the server listens");
    socket.write_all(upgrade.as_bytes()).expect("room in the socket");
    let mut first_line = String::new();
    BufReader::new(socket).read_line(&mut first_line).expect("an answer");
    assert_eq!(first_line, "HTTP/1.1 101 Switching Protocols\r\n");
    drop(kept);
    server.stop("-TERM");
}

#[test]
fn health_is_an_exit_code() {
    let server = Process::serve(fanwire().args(["--http_server.port=0", "--health.enabled"]));
    let url = format!("http://{}/health", server.address);
    for probe in [&[][..], &["ready"], &["live"]] {
        let (code, out, error) = run(&[&["health", "--url", &url], probe].concat());
        assert_eq!((code, &*out, &*error), (0, "{}\n", ""), "{probe:?}");
    }
    let (code, out, error) = run(&["health", "--url", &format!("{url}/else")]);
    assert_eq!((code, &*out), (1, ""));
    assert!(error.contains("answers 404"), "{error}");
    assert_eq!(server.stop("-TERM"), Some(0));
    let (code, _, error) = run(&["health", "ready", "--url", &url]);
    assert!(code == 1 && error.contains("refused"), "{error}");
    let off = file("no-health.yaml", "health: {enabled: false}\n");
    let (code, _, error) = run(&["health", "--config", &off]);
    assert!(code == 1 && error.contains("health.enabled"), "{error}");
}

#[test]
fn health_asks_where_the_configuration_says() {
    let server = Process::serve(fanwire().args(["--http_server.port=0", "--health.enabled"]));
    let (_, port) = server.address.rsplit_once(':').expect("a port");
    for (name, address) in [
        ("all", format!("address: 0.0.0.0, port: {port}")),
        (
            "internal",
            format!(
                "address: 127.0.0.9, port: 1, internal_port: {port}, internal_address: 127.0.0.1"
            ),
        ),
    ] {
        let text = format!("health: {{enabled: true}}\nhttp_server: {{{address}}}\n");
        let config = file(&format!("health-{name}.yaml"), &text);
        let (code, out, error) = run(&["health", "ready", "--config", &config]);
        assert_eq!((code, &*out, &*error), (0, "{}\n", ""), "{name}");
    }
}

/// Else a container that serves its clients would be called unhealthy, and restarted.
#[test]
fn where_no_program_gets_an_answer_a_live_server_is_one_that_accepts_connections() {
    let server = Process::serve(fanwire().args(["--http_server.port=0"]));
    let (_, port) = server.address.rsplit_once(':').expect("a port");
    let configs = [
        ("off", "health: {enabled: false}", ""),
        (
            "mtls",
            "health: {enabled: true}",
            "tls: {enabled: true, cert_pem: a, key_pem: b, client_ca_pem: c}",
        ),
        ("proxy", "health: {enabled: true}", "proxy_protocol: true, trusted_proxies: [127.0.0.1]"),
    ];
    let configs = configs.map(|(name, health, http)| {
        let text = format!("{health}\nhttp_server: {{address: 127.0.0.1, port: {port}, {http}}}\n");
        file(&format!("live-{name}.yaml"), &text)
    });
    for config in &configs {
        let (code, out, error) = run(&["health", "live", "--config", config]);
        assert_eq!((code, &*error), (0, ""), "{config}");
        assert_eq!(out, format!("127.0.0.1:{port} accepts connections\n"));
    }
    assert_eq!(run(&["health", "ready", "--config", &configs[0]]).0, 1, "ready asks for an answer");
    assert_eq!(server.stop("-TERM"), Some(0));
    for config in &configs {
        let (code, _, error) = run(&["health", "live", "--config", config]);
        assert!(code == 1 && error.contains("accepts no connection"), "{error}");
    }
}
