//! A WebSocket echo server on Fanwire's shards, frames and handshake (RFC 6455, RFC 7692).
//! In: an address on the command line → out: every message sent back, until the process is stopped.
//! Uses the library alone; the conformance suites run against this program.
//! Changed here: only the set-up. The echo itself is `fanwire::echo`.
//!
//! `cargo run --release --example echo -- 127.0.0.1:9001 [--dedicated] [--client-takeover]`
#![forbid(unsafe_code)]

use std::{net::SocketAddr, sync::Arc, time::Duration, time::Instant};

use axum::{Router, extract::Request, routing::any};
use fanwire::{
    echo::Echo,
    http::{
        admission::Admission,
        listener,
        root_service::RootService,
        upgrade::{ConnectionSetup, Endpoint},
    },
    shard::{ShardSettings, Shards, Transport},
    ws::extension,
};

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
    let endpoint = Arc::new(Endpoint {
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
    });
    let router = Router::new().fallback_service(any(move |request: Request| {
        let endpoint = endpoint.clone();
        async move {
            let setup = ConnectionSetup { hello: (), is_binary: false, message: Vec::new() };
            endpoint.upgrade(request, |_, _| setup)
        }
    }));
    let listener = listener::bind(address)?;
    println!("echo on ws://{}", listener.local_addr()?);
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let service = RootService::pages(router);
    listener::serve(listener, None, service, listener::HTTP_CONNECTIONS_MAX, stopped).await;
    Ok(())
}
