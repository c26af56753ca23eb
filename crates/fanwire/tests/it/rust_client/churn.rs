//! Many publications to a client whose connection is lost again and again: none lost, none twice.
//! In: numbers in a channel → out: the same numbers at the subscriber, in order.
//! Uses a server of the library; `FANWIRE_CHURN=MESSAGES,RECONNECTS` sets the size, 1000000,1000 for the long form.
//! Changed here: what churn is.

use std::cell::Cell;
use std::time::Duration;

use fanwire::{ConnectionSelector, Disconnect, config::Config};
use fanwire_client::{
    Client, ClientConfig, CompressionConfig, SubscriptionConfig, SubscriptionEvent,
};
use fanwire_testing::wait_for_async;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{dialogue::subscribed, server, url};

#[tokio::test]
async fn no_publication_is_lost_or_doubled_by_lost_connections() {
    let size = std::env::var("FANWIRE_CHURN").unwrap_or_else(|_| "10000,20".to_owned());
    let (messages, reconnects) = size.split_once(',').expect("MESSAGES,RECONNECTS");
    let messages: usize = messages.parse().expect("a number of messages");
    let reconnects: usize = reconnects.parse().expect("a number of reconnects");
    let change = |config: &mut Config| {
        config.client.insecure = true;
        config.client.recovery_max_publication_limit = 1 << 20;
        config.channel.without_namespace.history_size = 1 << 20;
    };
    let server = server(change).await;
    let config = ClientConfig::default()
        .compression(Some(CompressionConfig::default()))
        .reconnect_delay_min(Duration::from_millis(1))
        .reconnect_delay_max(Duration::from_millis(5));
    let client = Client::new(&url(&server), config).expect("an address");
    let options = SubscriptionConfig::default().recoverable(true).delta(true);
    let subscription = client.new_subscription("churn", options).expect("the first");
    let mut events = subscription.events();
    subscription.subscribe();
    client.connect();
    subscribed(&mut events).await;

    let handle = server.handle();
    // The publisher is faster than a client that connects again and again.
    let room = Semaphore::new(AHEAD_MAX);
    let subscribes = Cell::new(0);
    let publish = async {
        let mut lost = 0;
        for number in 0..messages {
            room.acquire().await.expect("it is open").forget();
            handle.publish("churn", format!("[{number}]")).await.expect("published");
            if number % (messages / reconnects) == 0 {
                // Otherwise there is no connection to lose.
                let is_subscribed = async || subscribes.get() == lost;
                wait_for_async(is_subscribed, Duration::from_secs(60)).await;
                lost += 1;
                let disconnect = Disconnect { code: 4000, reason: "churn".into() };
                let all = ConnectionSelector::default();
                handle.disconnect(all, disconnect).await.expect("sent");
            }
        }
    };
    let receive = async {
        let mut next = 0;
        while next < messages {
            let event = timeout(Duration::from_secs(60), events.next()).await;
            let event = event.unwrap_or_else(|_| panic!("{next}: {:?}", client.state()));
            match event.expect("the client runs") {
                SubscriptionEvent::Publication { publication, .. } => {
                    assert_eq!(publication.data, format!("[{next}]"));
                    assert_eq!(publication.offset, next as u64 + 1);
                    next += 1;
                    room.add_permits(1);
                }
                SubscriptionEvent::Subscribed(context) => {
                    assert!(context.recovered, "{context:?}");
                    subscribes.set(subscribes.get() + 1);
                }
                _ => {}
            }
        }
    };
    tokio::join!(publish, receive);
    assert_eq!(subscribes.get(), reconnects, "each lost connection is another subscribe");
    client.close().await;
}

/// Publications that the subscriber may be behind.
const AHEAD_MAX: usize = 10_000;
