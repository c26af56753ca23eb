//! Clients that connect one after the other: the time of each until it is subscribed, and of a POST on a connection of its own.
//! In: a server → out: the median and the 99th percentile of both.
//! Uses `caller`, one blocking socket at a time. Never opens a second connection before the first is closed.
//! Changed here: what a client sends before its time ends.

use anyhow::Result;
use std::net::SocketAddr;
use std::time::Instant;

use crate::caller::Caller;
use crate::stats::{median, percentile};
use crate::target::API_KEY;
use fanwire_load::generator::frame::{TEXT, encode_masked, front};
use fanwire_load::generator::handshake;
use fanwire_load::generator::publisher::{answer_length, publish_request};

/// Times of one kind of connection, in milliseconds.
pub(crate) struct Times(Vec<f64>);

impl Times {
    /// Measures a number of connections, after some that warm up the server.
    pub(crate) fn measure(count: usize, mut connect: impl FnMut() -> Result<()>) -> Result<Self> {
        for _ in 0..WARM_UP {
            connect()?;
        }
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let begin = Instant::now();
            connect()?;
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        Ok(Self(times))
    }

    pub(crate) fn median(&self) -> f64 {
        median(self.0.iter().copied())
    }

    pub(crate) fn p99(&self) -> f64 {
        percentile(&self.0, 0.99)
    }
}

/// A client that connects by WebSocket, subscribes to a channel and leaves.
pub(crate) fn subscribe(server: SocketAddr) -> Result<()> {
    subscriber(server).map(drop)
}

/// A client that connects by WebSocket, subscribes to [`CHANNEL`] and stays.
pub(crate) fn subscriber(server: SocketAddr) -> Result<Caller> {
    let mut caller = Caller::open(server)?;
    caller.send(&handshake::request("localhost", "/connection/websocket", false))?;
    caller.take(|bytes| Ok(handshake::answer(bytes)?.map(|(_, length)| length)))?;
    let mut commands = Vec::new();
    encode_masked(TEXT, br#"{"id":1,"connect":{}}"#, &mut commands);
    encode_masked(TEXT, SUBSCRIBE.as_bytes(), &mut commands);
    caller.send(&commands)?;
    let mut is_subscribed = false;
    while !is_subscribed {
        let frame = take_frame(&mut caller)?;
        is_subscribed = frame.windows(SUBSCRIBED.len()).any(|window| window == SUBSCRIBED);
    }
    Ok(caller)
}

/// Waits for the next frame.
pub(crate) fn take_frame(caller: &mut Caller) -> Result<Vec<u8>> {
    caller.take(|bytes| Ok(front(bytes)?.map(|(_, length)| length)))
}

/// A publication of a backend that opens a connection for each request.
pub(crate) fn publish(server: SocketAddr) -> Result<()> {
    let mut caller = Caller::open(server)?;
    caller.send(&publish_request(CHANNEL, "\"data\":1", API_KEY))?;
    caller.take(answer_length)?;
    Ok(())
}

pub(crate) const CHANNEL: &str = "lone";
const SUBSCRIBE: &str = r#"{"id":2,"subscribe":{"channel":"lone"}}"#;
const SUBSCRIBED: &[u8] = b"\"id\":2,\"subscribe\"";
const WARM_UP: usize = 50;
