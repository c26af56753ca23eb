//! Tests of the running binary: start, first request, stop.
//! In: flags, one HTTP request, a signal → out: the greeting, an answer, exit code 0.
//! Uses loopback sockets and `kill`. Never: fixed ports, waiting by the clock.
//! What happens at start and stop is tested here; the server's behaviour in its own crate.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use super::{fanwire, file, run};

/// Starts on a port the system chooses and reads the greeting up to its last line, the command that publishes.
fn start(flags: &[&str]) -> (Child, Vec<String>) {
    let mut command = fanwire();
    command.args(["--http_server.port=0", "--shards=1", "--shutdown.timeout=1s"]).args(flags);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary runs");
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

fn stop(mut child: Child) -> Option<i32> {
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    child.wait().expect("the server ends").code()
}

fn request(address: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.write_all(text.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server answers and closes");
    answer
}

#[test]
fn without_configuration_it_serves_the_demo_takes_a_publication_and_stops_on_sigterm() {
    let (child, lines) = start(&[]);
    let address = lines[0].rsplit(' ').next().expect("the address ends the line");
    assert!(address.starts_with("127.0.0.1:"), "{lines:?}");
    let key = lines
        .iter()
        .find_map(|line| line.trim_start().strip_prefix("API key "))
        .and_then(|rest| rest.split_whitespace().next())
        .expect("a key was made");

    let page = request(address, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");

    let body = r#"{"channel":"demo","data":{}}"#;
    let answer = request(
        address,
        &format!(
            "POST /api/publish HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    assert!(answer.ends_with(r#"{"result":{}}"#), "{answer}");
    assert_eq!(stop(child), Some(0));
}

#[test]
fn a_pid_file_is_there_while_the_server_runs() {
    let path = file("fanwire.pid", "1\n");
    let (child, _) = start(&["--pid_file", &path]);
    let written = std::fs::read_to_string(&path).expect("it is there");
    assert_eq!(written, format!("{}\n", child.id()));
    assert_eq!(stop(child), Some(0));
    assert!(!std::path::Path::new(&path).exists());
}

#[test]
fn a_pid_file_that_cannot_be_written_is_named() {
    let path = format!("{}/nowhere/fanwire.pid", env!("CARGO_TARGET_TMPDIR"));
    let (code, _, error) = run(&["--http_server.port=0", "--pid_file", &path]);
    assert_eq!(code, 1);
    assert!(error.contains("pid_file") && error.contains(&path), "{error}");
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
