//! Prints the publications of a channel, and recovers what was published while the connection was lost.
//! In: a channel, and a token in the variable FANWIRE_TOKEN → out: a line for each publication and each change of state.
//! Uses the public items of the crate. Never: a word of the protocol.
//! Changed here: what a reader of the crate sees first.
//!
//! `cargo run -p fanwire-client --example subscribe -- news`

use std::error::Error;

use fanwire_client::{Client, ClientConfig, ClientEvent, SubscriptionConfig, SubscriptionEvent};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let channel = std::env::args().nth(1).unwrap_or_else(|| "news".to_owned());
    let token = std::env::var("FANWIRE_TOKEN").unwrap_or_default();
    let config = ClientConfig::default().token(token);
    let client = Client::new("ws://localhost:8000/connection/websocket", config)?;
    let subscription =
        client.new_subscription(&channel, SubscriptionConfig::default().recoverable(true))?;
    let mut connection = client.events();
    let mut events = subscription.events();
    subscription.subscribe();
    client.connect();
    loop {
        tokio::select! {
            event = connection.next() => match event {
                Some(ClientEvent::Disconnected { code, reason }) => {
                    return Err(format!("disconnected: {reason} ({code})").into());
                }
                Some(event) => println!("{event:?}"),
                None => return Ok(()),
            },
            event = events.next() => match event {
                Some(SubscriptionEvent::Publication { publication, .. }) => {
                    println!("{} {}", publication.offset, String::from_utf8_lossy(&publication.data));
                }
                Some(event) => println!("{event:?}"),
                None => return Ok(()),
            },
        }
    }
}
