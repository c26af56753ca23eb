//! The page of the world over plain HTTP, one request per connection.
//! In: GET requests of browsers → out: the page and the SDK; in: a path → out: what the server of the world answers.
//! Uses the standard library: an example needs no web framework.
//! Change here: what is served. The page itself is `assets/index.html`.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

const PAGE: &str = include_str!("../assets/index.html");
const SDK: &str = include_str!("../assets/centrifuge.js");
/// A browser may open a connection and send nothing for a while.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until the process ends.
pub(crate) fn serve(listener: &TcpListener, websocket: &str) {
    for connection in listener.incoming().flatten() {
        let websocket = websocket.to_owned();
        // A browser that goes away needs no answer.
        thread::spawn(move || drop(answer(&connection, &websocket)));
    }
}

fn answer(mut connection: &TcpStream, websocket: &str) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(connection.take(HEAD_BYTES_MAX)).read_line(&mut line)?;
    let (status, kind, body) = match line.split(' ').nth(1) {
        Some("/") => ("200 OK", "text/html", PAGE.replace("{{websocket}}", websocket)),
        Some("/centrifuge.js") => ("200 OK", "text/javascript", SDK.to_owned()),
        _ => ("404 Not Found", "text/plain", "not found\n".to_owned()),
    };
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// The body of a GET request.
pub(crate) fn fetch(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    connection.read_to_string(&mut response)?;
    let body = response.strip_prefix("HTTP/1.1 200").and_then(|rest| rest.split_once("\r\n\r\n"));
    body.map(|(_, body)| body.to_owned()).ok_or(io::ErrorKind::InvalidData.into())
}

const HEAD_BYTES_MAX: u64 = 8 << 10;
