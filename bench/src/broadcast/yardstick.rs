//! What a broadcast needs at least: a round trip of as many bytes, or as many plain PUBLISH by redis-benchmark.
//! In: a request and the size of its answer, or a Redis and the data → out: µs.
//! Uses one thread with a blocking socket on the server's core. It is the floor, so nothing may be added to it.
//! Change nothing here that makes it slower; the other side of the measurement lives in `broadcast`.

use anyhow::Result;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;
use std::time::Instant;

use super::name;
use crate::caller::Caller;
use crate::redis::{PublishLoad, RedisServer};
use crate::stats::median;
use fanwire_load::machine;

/// A program that is measured next to Fanwire.
pub enum Yardstick<'a> {
    Echo { request: &'a [u8], answer_bytes: usize, calls: usize },
    Redis { redis: &'a RedisServer, payload: &'a str, channels: usize, publications: usize },
}

impl Yardstick<'_> {
    /// µs for what one call does, where the server would do it.
    ///
    /// # Errors
    /// No socket, or no redis-benchmark.
    pub fn us(&self, server_core: usize) -> Result<f64> {
        match *self {
            Self::Echo { request, answer_bytes, calls } => {
                echo_us(request, answer_bytes, calls, server_core)
            }
            Self::Redis { redis, payload, channels, publications } => {
                let feed = feed(&name(channels - 1));
                let record = record(payload);
                let load = PublishLoad {
                    channel: &feed,
                    record: &record,
                    at_once: channels,
                    count: publications,
                };
                redis.publish_us(Some(server_core), &load)
            }
        }
    }
}

/// The median time of sending the request to a thread that reads it whole and answers with as many bytes as Fanwire.
fn echo_us(request: &[u8], answer_bytes: usize, calls: usize, core: usize) -> Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut bytes = vec![0; request.len()];
    let server = thread::spawn(move || -> Result<()> {
        machine::pin(core)?;
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let answer = vec![b'x'; answer_bytes];
        loop {
            match stream.read_exact(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            stream.write_all(&answer)?;
        }
    });
    let mut caller = Caller::open(address)?;
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = Instant::now();
        caller.send(request)?;
        caller.take(|bytes| Ok((bytes.len() >= answer_bytes).then_some(answer_bytes)))?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    drop(caller);
    server.join().expect("the echo does not panic")?;
    Ok(median(times))
}

/// Under what Fanwire publishes in Redis (docs/redis-data.md).
fn feed(channel: &str) -> String {
    format!("fanwire.feed.{{:{channel}}}")
}

/// The record that Fanwire publishes in Redis: a version byte, and Protobuf: field 1 is the publication, whose field 4 is the data.
fn record(payload: &str) -> Vec<u8> {
    let field = |head: u8, bytes: &[u8]| [&[head], varint(bytes.len()).as_slice(), bytes].concat();
    [&[1], field(0x0a, &field(0x22, payload.as_bytes())).as_slice()].concat()
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[cfg(test)]
mod tests;
