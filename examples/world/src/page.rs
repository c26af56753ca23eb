//! The one port of the world: the page over plain HTTP, one request per connection; everything else goes to the server.
//! In: connections of browsers → out: the page, the SDK, or what the server of the world answers.
//! Uses the standard library: an example needs no web framework.
//! Changed here: what is served. The page itself is `assets/index.html`.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

const PAGE: &str = include_str!("../assets/index.html");
const SDK: &str = include_str!("../assets/centrifuge.js");
/// A browser may open a connection and send nothing for a while.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until the process ends.
pub(crate) fn serve(listener: &TcpListener, server: SocketAddr) {
    for connection in listener.incoming().flatten() {
        // A browser that goes away needs no answer.
        thread::spawn(move || drop(answer(&connection, server)));
    }
}

fn answer(mut connection: &TcpStream, server: SocketAddr) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    let mut reader = BufReader::new(connection.take(HEAD_BYTES_MAX));
    reader.read_line(&mut line)?;
    let (kind, body) = match line.split(' ').nth(1) {
        Some("/") => ("text/html", PAGE),
        Some("/centrifuge.js") => ("text/javascript", SDK),
        _ => return forward(connection, server, &[line.as_bytes(), reader.buffer()].concat()),
    };
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Copies what follows `begun` to the server and its answers back, until one of them has ended.
fn forward(mut browser: &TcpStream, server: SocketAddr, begun: &[u8]) -> io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    browser.set_read_timeout(None)?;
    for socket in [browser, &server] {
        socket.set_nodelay(true)?; // what is copied is complete
    }
    server.write_all(begun)?;
    let mut to_browser = browser.try_clone()?;
    let mut from_server = server.try_clone()?;
    thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_browser);
        to_browser.shutdown(Shutdown::Both)
    });
    io::copy(&mut browser, &mut server)?;
    server.shutdown(Shutdown::Both)
}

const HEAD_BYTES_MAX: u64 = 8 << 10;
