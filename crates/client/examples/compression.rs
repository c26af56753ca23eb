//! Sends messages to servers that echo them, with each of the client's parameters of permessage-deflate (RFC 7692 §7.1).
//! In: addresses of servers → out: how many connections each made; an error at the first message that comes back changed.
//! Uses the public items of the crate, as a test of it against compressors that are not ours.
//! Changed here: the combinations and the messages. The servers stand in `tests/interop/python/echo_server.py`.

use std::{error::Error, time::Duration};

use fanwire_client::{
    Client, ClientConfig, CompressionConfig, EventStream, Strategy, SubscriptionConfig,
    SubscriptionEvent, TakeoverOffer,
};
use tokio::time::timeout;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let is_at_length = std::env::var_os("FANWIRE_COMBINATIONS").is_some();
    for (number, address) in std::env::args().skip(1).enumerate() {
        // The first server, whose parameters are the default ones, meets all of them, each other one its share.
        let step = if number == 0 || is_at_length { 1 } else { SHARES };
        let chosen = combinations().into_iter().skip(number % step).step_by(step);
        let mut connections = 0;
        for compression in chosen {
            let echo = timeout(PATIENCE, echo(&address, compression));
            let failed = match echo.await {
                Ok(Ok(())) => {
                    connections += 1;
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(elapsed) => elapsed.to_string(),
            };
            return Err(format!("{address} with {compression:?}: {failed}").into());
        }
        println!("{address}: {connections} connections");
    }
    Ok(())
}

/// Every direction with every window, every level, memory level and strategy of ours.
fn combinations() -> Vec<CompressionConfig> {
    let mut all = Vec::new();
    for context_takeover in [true, false] {
        for window_bits in 8..=15 {
            let offer = TakeoverOffer { context_takeover, window_bits };
            all.push(CompressionConfig::default().client(offer));
            // zlib, which the servers use, has no raw window of 8 bits.
            if window_bits > 8 {
                all.push(CompressionConfig::default().server(offer));
            }
        }
    }
    all.extend((1..=9).map(|level| CompressionConfig::default().level(level)));
    all.extend((1..=9).map(|level| CompressionConfig::default().memory_level(level)));
    let names = Strategy::NAMES.iter().filter_map(|name| Strategy::named(name));
    all.extend(names.map(|strategy| CompressionConfig::default().strategy(strategy)));
    all
}

/// Publishes objects and waits until each of them comes back.
async fn echo(address: &str, compression: CompressionConfig) -> Result<(), Box<dyn Error>> {
    let client = Client::new(address, ClientConfig::default().compression(compression))?;
    let subscription = client.new_subscription(CHANNEL, SubscriptionConfig::default())?;
    let mut events = subscription.events();
    subscription.subscribe();
    client.connect();
    while !matches!(events.next().await, Some(SubscriptionEvent::Subscribed { .. })) {}
    for number in 0..MESSAGES {
        let sent = message(number);
        client.publish(CHANNEL, sent.clone()).await?;
        let echoed = next_data(&mut events).await.ok_or("the client has ended")?;
        if echoed != sent.as_bytes() {
            return Err(format!("message {number} came back changed").into());
        }
    }
    Ok(())
}

async fn next_data(events: &mut EventStream<SubscriptionEvent>) -> Option<Vec<u8>> {
    loop {
        if let SubscriptionEvent::Publication { publication, .. } = events.next().await? {
            return Some(publication.data.to_vec());
        }
    }
}

/// An object that has parts of the ones before it, and parts that are new; up to some 12 KB.
fn message(number: u32) -> String {
    let mut words = String::new();
    let mut word = number;
    for _ in 0..number.pow(3) {
        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        words.push_str(["ärger ", "goal ", "minute ", "player "][(word >> 30) as usize]);
        words.push_str(&(word % 97).to_string());
    }
    format!("{{\"number\":{number},\"words\":\"{words}\"}}")
}

const CHANNEL: &str = "echo";
/// One server of so many meets a combination; with `FANWIRE_COMBINATIONS` each server does.
const SHARES: usize = 6;
const MESSAGES: u32 = 12;
const PATIENCE: Duration = Duration::from_secs(60);
