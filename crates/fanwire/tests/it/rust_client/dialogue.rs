//! One dialogue with a server that has a history, recovery, presence and deltas, and lets anonymous clients do everything.
//! In: the address of a server, options of a client → out: assertions about events and results.
//! Uses the client alone, so that any server of the protocol can be at the other end.
//! Changed here: steps that every server of the protocol has to pass.

use fanwire_client::{
    Client, ClientConfig, ClientError, ClientEvent, ClientState, Encoding, EventStream,
    HistoryOptions, SubscribedContext, SubscriptionConfig, SubscriptionEvent, SubscriptionState,
};
use futures_util::future::join_all;

use super::until;

/// Runs the dialogue in a channel that no other dialogue uses.
pub(super) async fn run(url: &str, config: &ClientConfig, channel: &str) {
    let reader = Client::new(url, config.clone()).expect("an address");
    let writer = Client::new(url, config.clone()).expect("an address");
    let mut connection = reader.events();
    let options = SubscriptionConfig::default().recoverable(true).delta(true);
    let subscription = reader.new_subscription(channel, options.clone()).expect("the first");
    let second = reader.new_subscription(channel, options);
    let duplicate = ClientError::DuplicateSubscription { channel: channel.to_owned() };
    assert_eq!(second.err(), Some(duplicate));
    let mut events = subscription.events();
    subscription.subscribe();
    reader.connect();
    writer.connect();
    let connected = until(&mut connection, |event| matches!(event, ClientEvent::Connected { .. }));
    let ClientEvent::Connected { client, .. } = connected.await else { unreachable!() };
    assert!(!client.is_empty());
    let first = subscribed(&mut events).await;
    assert!(first.recoverable && !first.was_recovering, "{first:?}");

    let texts: Vec<String> = (0..3).map(text).collect();
    for text in &texts {
        writer.publish(channel, text.clone()).await.expect("published");
    }
    assert_eq!(publications(&mut events, 3).await, texts, "deltas arrive whole");

    let all =
        writer.history(channel, HistoryOptions::default().limit(-1)).await.expect("a history");
    assert_eq!(all.offset, 3);
    let offsets: Vec<_> = all.publications.iter().map(|publication| publication.offset).collect();
    assert_eq!(offsets, [1, 2, 3]);
    let newest = HistoryOptions::default().limit(1).reverse(true);
    let newest = writer.history(channel, newest).await.expect("a history");
    assert_eq!(newest.publications[0].offset, 3);
    let presence = writer.presence(channel).await.expect("a presence");
    assert_eq!(presence.presence.keys().collect::<Vec<_>>(), [&client]);
    let stats = writer.presence_stats(channel).await.expect("numbers");
    assert_eq!(stats.num_clients, 1);

    subscription.unsubscribe();
    until(&mut events, |event| matches!(event, SubscriptionEvent::Unsubscribed { .. })).await;
    assert_eq!(subscription.state(), SubscriptionState::Unsubscribed);
    writer.start_batching();
    let missed: Vec<String> = (3..13).map(text).collect();
    let batch = missed.iter().map(|text| writer.publish(channel, text.clone()));
    let all = async { join_all(batch).await };
    let stop = async {
        // The publishes are instructions to the task already when this is polled.
        writer.stop_batching();
    };
    let (results, ()) = tokio::join!(all, stop);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    subscription.subscribe();
    let again = subscribed(&mut events).await;
    assert!(again.was_recovering && again.recovered, "{again:?}");
    assert_eq!(publications(&mut events, 10).await, missed, "what was missed");

    let rpc = writer.rpc("method", "{}").await;
    let Err(ClientError::Server(error)) = rpc else { panic!("{rpc:?}") };
    assert_eq!(error.code, 108);
    if config.encoding == Encoding::Json {
        assert_eq!(writer.publish(channel, "no json").await, Err(ClientError::NotJson));
    }
    let unknown = reader.new_subscription("unknown:a", SubscriptionConfig::default());
    let unknown = unknown.expect("the first");
    let mut refused = unknown.events();
    unknown.subscribe();
    let end = until(&mut refused, |event| matches!(event, SubscriptionEvent::Unsubscribed { .. }));
    let end = end.await;
    assert!(matches!(end, SubscriptionEvent::Unsubscribed { code: 102, .. }), "{end:?}");

    reader.disconnect();
    until(&mut connection, |event| matches!(event, ClientEvent::Disconnected { .. })).await;
    assert_eq!(reader.state(), ClientState::Disconnected);
    assert_eq!(reader.publish(channel, "1").await, Err(ClientError::Disconnected));
    writer.publish(channel, text(13)).await.expect("published");
    reader.connect();
    let third = subscribed(&mut events).await;
    assert!(third.recovered, "{third:?}");
    assert_eq!(publications(&mut events, 1).await, [text(13)]);
    reader.close().await;
    writer.close().await;
}

fn text(number: usize) -> String {
    format!(r#"{{"text":"the same in every publication, é and all","number":{number}}}"#)
}

pub(super) async fn subscribed(events: &mut EventStream<SubscriptionEvent>) -> SubscribedContext {
    let event = until(events, |event| matches!(event, SubscriptionEvent::Subscribed(_))).await;
    let SubscriptionEvent::Subscribed(subscribed) = event else { unreachable!() };
    subscribed
}

/// The payloads of the next publications.
pub(super) async fn publications(
    events: &mut EventStream<SubscriptionEvent>,
    count: usize,
) -> Vec<String> {
    let mut texts = Vec::new();
    while texts.len() < count {
        let is_publication =
            |event: &SubscriptionEvent| matches!(event, SubscriptionEvent::Publication { .. });
        if let SubscriptionEvent::Publication { publication, wire_bytes } =
            until(events, is_publication).await
        {
            assert!(wire_bytes > 0);
            texts.push(String::from_utf8(publication.data.to_vec()).expect("our text"));
        }
    }
    texts
}
