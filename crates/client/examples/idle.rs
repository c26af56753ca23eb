//! Memory of idle clients: opens some, each with a subscription, and prints what one of them adds to the process.
//! In: their number → out: KiB of resident memory for each.
//! Uses the public items of the crate. Never: a word of the protocol.
//! Changed here: what is measured. Its figure is in docs/bench.md.
//!
//! `cargo run --release -p fanwire-client --example idle -- 1000`, next to `cargo run --release`

use std::error::Error;
use std::fs;

use fanwire_client::{Client, ClientConfig, ClientEvent, SubscriptionConfig, SubscriptionEvent};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse::<u32>())?;
    let first = client().await?;
    let before = resident_kib()?;
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(client().await?);
    }
    let each = (resident_kib()? - before) / f64::from(count);
    println!("{each:.1} KiB of resident memory for each of {count} clients");
    drop((first, clients));
    Ok(())
}

/// A client that is subscribed.
async fn client() -> Result<Client, Box<dyn Error>> {
    let url = "ws://localhost:8000/connection/websocket";
    let client = Client::new(url, ClientConfig::default())?;
    let subscription = client.new_subscription("news", SubscriptionConfig::default())?;
    let mut connection = client.events();
    let mut events = subscription.events();
    subscription.subscribe();
    client.connect();
    loop {
        tokio::select! {
            event = connection.next() => {
                if let Some(ClientEvent::Disconnected { code, reason }) = event {
                    return Err(format!("disconnected: {reason} ({code})").into());
                }
            }
            event = events.next() => {
                if let Some(SubscriptionEvent::Subscribed(_)) = event {
                    return Ok(client);
                }
            }
        }
    }
}

fn resident_kib() -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.ok_or("no VmRSS")?.trim().trim_end_matches(" kB").parse()?)
}
