//! An echo server over `std::net`: a handshake, permessage-deflate, fragments, pings and closes, without a library for IO.
//! In: an address → out: each text and each binary message, back to its client.
//! Uses the crate's public items and a thread for each connection. Never: an HTTP library; its reader of a head knows what it needs.
//! Changed here: what a reader of the crate sees first.
//!
//! `cargo run -p fanwire-ws --example std_echo 127.0.0.1:9001`

use std::collections::HashMap;
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use fanwire_deflate::Compressor;
use fanwire_ws::extension::{self, ExtensionSettings};
use fanwire_ws::{Compression, Event, Input, Limits, Opcode, Pool, Reader, frame, handshake};

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9001".to_owned());
    let listener = TcpListener::bind(address)?;
    println!("ws://{}", listener.local_addr()?);
    for socket in listener.incoming() {
        let socket = socket?;
        std::thread::spawn(move || {
            if let Err(error) = serve(socket) {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

fn serve(mut socket: TcpStream) -> Result<(), Box<dyn Error>> {
    let compression = accept(&mut socket)?;
    let mut reader = Reader::new(compression != Compression::Raw);
    let mut pool = Pool::new();
    let mut echo =
        Echo { compression, compressor: Compressor::new(6), out: Vec::new(), ended: false };
    let mut bytes = [0; 4096];
    while !echo.ended {
        let length = socket.read(&mut bytes)?;
        if length == 0 {
            break;
        }
        let mut input = Input::new(&mut bytes[..length]);
        loop {
            match reader.receive(&mut input, &mut pool, &Limits::default()) {
                Ok(Some(event)) => echo.answer(event),
                Ok(None) => break,
                Err(failure) => echo.close(failure.close_code(), &failure.to_string()),
            }
        }
        socket.write_all(&echo.out)?;
        echo.out.clear();
    }
    Ok(())
}

/// Reads the head of the request and answers it: with 101, or with the status of the rule that it breaks.
fn accept(socket: &mut TcpStream) -> Result<Compression, Box<dyn Error>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?; // a client sends no frame before the answer
        head.push(byte[0]);
    }
    let head = String::from_utf8(head)?;
    let mut lines = head.lines();
    let method = lines.next().and_then(|line| line.split(' ').next()).unwrap_or_default();
    let headers: HashMap<String, &str> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let header = |name: &str| headers.get(name).copied();
    let request = handshake::HandshakeRequest {
        method,
        http_1_1_or_newer: true,
        has_body: false,
        upgrade: header("upgrade"),
        connection: header("connection"),
        key: header("sec-websocket-key"),
        version: header("sec-websocket-version"),
    };
    let accept = match handshake::check(&request) {
        Ok(accept) => accept,
        Err(error) => {
            write!(socket, "HTTP/1.1 {} Refused\r\nContent-Length: 0\r\n\r\n", error.status())?;
            return Err(error.into());
        }
    };
    let offers = header("sec-websocket-extensions");
    let agreement = extension::negotiate(offers.into_iter(), ExtensionSettings::default());
    let extensions = agreement.map_or_else(String::new, |agreement| {
        format!("Sec-WebSocket-Extensions: {}\r\n", agreement.response())
    });
    write!(
        socket,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{extensions}\r\n"
    )?;
    Ok(Compression::of(agreement))
}

/// What is to be sent back.
struct Echo {
    compression: Compression,
    compressor: Compressor,
    out: Vec<u8>,
    ended: bool,
}

impl Echo {
    fn answer(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => self.message(Opcode::Text, text.as_bytes()),
            Event::Binary(bytes) => self.message(Opcode::Binary, bytes),
            Event::Ping(payload) => frame::encode(Opcode::Pong, false, payload, &mut self.out),
            Event::Pong(_) => {}
            Event::Close(reason) => {
                let (code, reason) = reason.unwrap_or((1000, ""));
                self.close(code, reason);
            }
        }
    }

    /// Compresses the message by itself where that was agreed and makes it shorter.
    fn message(&mut self, opcode: Opcode, message: &[u8]) {
        let mut payload = Vec::new();
        if let Some(window_bits) = self.compression.window_bits() {
            self.compressor.standalone_within(window_bits, message, &mut payload);
        }
        if payload.is_empty() || payload.len() >= message.len() {
            frame::encode(opcode, false, message, &mut self.out);
        } else {
            frame::encode(opcode, true, &payload, &mut self.out);
        }
    }

    fn close(&mut self, code: u16, reason: &str) {
        frame::encode_close(code, reason, &mut self.out);
        self.ended = true;
    }
}
