//! The program as a user starts it: its page over HTTP, and a port that is none.
//! In: arguments → out: what it prints and serves.
//! Uses the built program and plain sockets. Never: a browser; `tests/interop/browser` has one.
//! Changed here: expectations of the program's start.
#![forbid(unsafe_code)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_world");

/// Ends the program with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> (Running, String) {
    let mut program = Command::new(PROGRAM);
    let child = program.arg("0").stdout(Stdio::piped()).spawn().expect("it starts");
    let mut running = Running(child);
    let mut line = String::new();
    let output = running.0.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("a world at http://").expect("an address");
    (running, address.to_owned())
}

fn fetch(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).expect("it listens");
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut response = String::new();
    connection.read_to_string(&mut response).expect("it answers");
    response
}

#[test]
fn it_serves_its_page_and_the_sdk() {
    let (_running, address) = start();
    let address = &address;
    let page = fetch(address, "/");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("location.host}/connection/websocket")
    );
    assert!(fetch(address, "/centrifuge.js").contains("Centrifuge"));
    assert!(fetch(address, "/other").starts_with("HTTP/1.1 404"));
}

#[test]
fn websockets_come_through_the_port_of_the_page() {
    let (_running, address) = start();
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let head = format!("Host: {address}\r\nOrigin: http://{address}\r\n{upgrade}");
    let mut connection = TcpStream::connect(&address).expect("it listens");
    write!(connection, "GET /connection/websocket HTTP/1.1\r\n{head}\r\n").expect("it reads");
    let mut line = String::new();
    BufReader::new(&connection).read_line(&mut line).expect("an answer");
    assert!(line.starts_with("HTTP/1.1 101"), "{line}");
}

#[test]
fn a_port_that_is_none_is_an_error() {
    let output = Command::new(PROGRAM).arg("http").output().expect("it starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected the number of a port"));
}

#[test]
fn help_says_what_the_program_takes() {
    for flag in ["--help", "-h"] {
        let output = Command::new(PROGRAM).arg(flag).output();
        let output = output.expect("the program runs");
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("Usage: world [PORT]"));
    }
}
