//! A WebSocket echo server on Fanwire's shards, frames and handshake (RFC 6455, RFC 7692).
//! In: an address on the command line → out: every message sent back, until the process is stopped.
//! Uses shards and endpoints of a server; the conformance suites run against this program.
//! Changed here: the echo, and its set-up.
//!
//! `cargo run --release --example echo -- 127.0.0.1:9001 [--dedicated] [--client-takeover]`
#![forbid(unsafe_code)]

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use axum::{
    body::Body,
    http::{Request as HttpRequest, Response},
};
use fanwire_edge::{
    Admission, ConnectionSetup, Endpoint, ListenerSettings, Service, TrackedBody, listener,
};
use fanwire_shard::{
    Application, CloseCause, ConnectionWriter, ReceivedMessage, ShardSettings, Shards, SlotKey,
    Transport,
};
use fanwire_ws::extension;
use hyper::body::Incoming;

const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

const CLIENT_TAKEOVER: extension::ClientTakeover =
    extension::ClientTakeover { window_bits: 12, requires_choice: false };

fn has_flag(flag: &str) -> bool {
    std::env::args().any(|argument| argument == flag)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address: SocketAddr =
        std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:9001").parse()?;
    let settings = ShardSettings {
        queue_bytes_max: 4 * MESSAGE_BYTES_MAX,
        slow_close: (1008, "slow"),
        write_timeout: Duration::from_secs(30),
        compression_min_bytes: 0,
        message_bytes_max: MESSAGE_BYTES_MAX,
        inflated_bytes_max: MESSAGE_BYTES_MAX,
        fragments_max: 1 << 20,
        ..ShardSettings::default()
    };
    let endpoint = Endpoint {
        shards: Shards::start(&settings, |_| Echo)?,
        compression: extension::ExtensionSettings {
            client_takeover: has_flag("--client-takeover").then_some(CLIENT_TAKEOVER),
            ..extension::ExtensionSettings::default()
        },
        compression_apple: false,
        compression_dedicated: has_flag("--dedicated"),
        compression_memory: settings.dedicated.memory.clone(),
        decode_failures: settings.decode_failures.clone(),
        subprotocols: &[],
        transport: Transport::WebSocket,
        admission: Admission::open(Instant::now()),
    };
    let listener = listener::bind(address)?;
    println!("echo on ws://{}", listener.local_addr()?);
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let slots = listener::HTTP_CONNECTIONS_MAX;
    let settings = ListenerSettings { slots, ..ListenerSettings::default() };
    listener::serve(listener, settings, EchoService(endpoint), stopped).await;
    Ok(())
}

/// Every path is that of the WebSocket.
struct EchoService(Endpoint<Echo>);

impl Service for EchoService {
    type Body = Body;

    async fn answer(
        &self,
        request: HttpRequest<TrackedBody<Incoming>>,
        _peer: SocketAddr,
    ) -> Response<Body> {
        let setup = ConnectionSetup { opening: (), is_binary: false, message: Vec::new() };
        self.0.upgrade(request.map(Body::new), |_, _| Ok(setup))
    }

    fn late(&self) -> Response<Body> {
        Response::default()
    }
}

#[derive(Default)]
pub struct Echo;

impl Application for Echo {
    type Notice = std::convert::Infallible;
    type Opening = ();

    fn open(&mut self, _key: SlotKey, (): (), _now: Instant, _out: &mut ConnectionWriter) {}

    fn receive(
        &mut self,
        key: SlotKey,
        message: ReceivedMessage<'_>,
        _now: Instant,
        out: &mut ConnectionWriter,
    ) -> usize {
        out.send_as(key, matches!(message, ReceivedMessage::Binary(_)), message.bytes());
        0
    }

    fn notice(&mut self, notice: Self::Notice, _now: Instant, _out: &mut ConnectionWriter) {
        match notice {}
    }

    fn advance(&mut self, _now: Instant, _out: &mut ConnectionWriter) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn close(&mut self, _: SlotKey, _: CloseCause, _: Instant, _: &ConnectionWriter) {}
}
