//! The backend of the scenario `polls`: it answers each call with the values of the keys, which change each second.
//! In: requests over HTTP → out: answers, and the number of items that were asked for.
//! Uses a thread for each connection. Never: a version of its own choice; it is the second.
//! Changed here: what a value is.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// A backend that counts what it is asked for.
pub(super) struct Backend {
    address: SocketAddr,
    items: Arc<AtomicU64>,
}

impl Backend {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// There is no port.
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let items = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&items);
        let started = Instant::now();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let items = Arc::clone(&counted);
                std::thread::spawn(move || answer_all(socket, started, &items));
            }
        });
        Ok(Self { address, items })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Items that were asked for since the last call.
    pub(super) fn take_items(&self) -> u64 {
        self.items.swap(0, Relaxed)
    }
}

/// Answers the requests of a connection until it ends.
fn answer_all(socket: TcpStream, started: Instant, items: &AtomicU64) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket);
    loop {
        let request: Value = serde_json::from_slice(&read_body(&mut reader)?)?;
        let asked = request["items"].as_array().context("a request has items")?;
        items.fetch_add(asked.len() as u64, Relaxed);
        let second = started.elapsed().as_secs() + 1;
        let value = |item: &Value| json!({ "key": item["key"], "data": { "price": second }, "version": second });
        let values: Vec<_> = asked.iter().map(value).collect();
        let body = json!({ "result": { "items": values } }).to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        reader.get_mut().write_all(answer.as_bytes())?;
    }
}

fn read_body(reader: &mut BufReader<TcpStream>) -> Result<Vec<u8>> {
    let mut length = 0;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        ensure!(reader.read_line(&mut line)? > 0, "the server has left");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}
