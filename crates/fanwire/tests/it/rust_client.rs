//! The client for Rust programs against a server: what its users do in their first month.
//! In: calls of `fanwire_client` → out: its events and results, with real sockets.
//! Uses a server of the library; `dialogue` runs against Centrifugo, too, if its binary is given.
//! Changed here: dialogues with Fanwire alone. Rules of the client without sockets are tested in its crate.

mod centrifugo;
mod churn;
mod dialogue;

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fanwire::{
    ConnectionSelector, Disconnect, Publication, PublicationOptions, Server, config::Config,
};
use fanwire_auth::{ConnectionToken, HmacAlgorithm, Lifetime, sign_hmac_connection};
use fanwire_client::{
    Client, ClientConfig, ClientError, ClientEvent, CompressionConfig, Encoding, EventStream,
    FilterNode, GetTokenError, SubscriptionConfig, SubscriptionEvent,
};
use rustls::version::TLS13;
use tokio::time::timeout;

use crate::client::start;
use crate::tls::authority::Authority;
use dialogue::{publications, subscribed};

const SECRET: &str = "secret";

/// A server with a history, deltas and tag filters in channels without a namespace.
async fn server(change: impl FnOnce(&mut Config)) -> Server {
    start(|config| {
        let namespace = &mut config.channel.without_namespace;
        namespace.presence = true;
        namespace.history_size = 100;
        namespace.history_ttl = Duration::from_secs(300);
        namespace.force_recovery = true;
        namespace.allow_tags_filter = true;
        namespace.allowed_delta_types = vec!["fossil".to_owned()];
        namespace.delta_publish = true;
        namespace.allow_subscribe_for_client = true;
        config.client.insecure = false;
        config.client.token.hmac_secret_key = SECRET.into();
        change(config);
    })
    .await
}

fn url(server: &Server) -> String {
    format!("ws://{}/connection/websocket", server.address())
}

/// Takes events until one is the expected one, and returns it.
async fn until<E: Debug>(events: &mut EventStream<E>, is_expected: impl Fn(&E) -> bool) -> E {
    let mut seen = Vec::new();
    let wait = async {
        loop {
            let event = events.next().await.expect("the client runs");
            if is_expected(&event) {
                return event;
            }
            seen.push(event);
        }
    };
    match timeout(Duration::from_secs(20), wait).await {
        Ok(event) => event,
        Err(_) => panic!("only {seen:?}"),
    }
}

/// A token that is valid from now on for this many seconds; below 0: it has expired.
fn token(seconds: i64, channels: &[String]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let issued_at = if seconds < 0 { now.saturating_sub(100) } else { now };
    let lifetime = if seconds < 0 { 50 } else { seconds.unsigned_abs() };
    let token = ConnectionToken {
        user: "ada",
        user_id_claim: "",
        channels,
        issued_at,
        lifetime: Lifetime::Seconds(lifetime),
        info: "",
        audience: "",
        issuer: "",
    };
    sign_hmac_connection(SECRET, HmacAlgorithm::Hs256, &token).expect("a secret")
}

fn configs() -> [ClientConfig; 4] {
    let compression = Some(CompressionConfig::default());
    [Encoding::Json, Encoding::Protobuf]
        .map(|encoding| {
            [
                ClientConfig::default().encoding(encoding),
                ClientConfig::default().encoding(encoding).compression(compression),
            ]
        })
        .concat()
        .try_into()
        .expect("two times two")
}

#[tokio::test]
async fn the_dialogue_of_a_first_month_works_in_every_encoding() {
    let server = server(|config| config.client.insecure = true).await;
    for (number, config) in configs().into_iter().enumerate() {
        dialogue::run(&url(&server), &config, &format!("dialogue{number}")).await;
    }
}

#[tokio::test]
async fn a_wrong_token_ends_the_client_and_an_expired_one_is_replaced() {
    let server = server(|_| {}).await;
    let client =
        Client::new(&url(&server), ClientConfig::default().token("wrong")).expect("an address");
    let mut events = client.events();
    client.connect();
    let end = until(&mut events, |event| matches!(event, ClientEvent::Disconnected { .. })).await;
    assert!(matches!(end, ClientEvent::Disconnected { code: 3500, .. }), "{end:?}");

    let config =
        ClientConfig::default().token(token(-1, &[])).get_token(|| async { Ok(token(100, &[])) });
    let client = Client::new(&url(&server), config).expect("an address");
    let mut events = client.events();
    client.connect();
    let expired = until(&mut events, |event| matches!(event, ClientEvent::Error(_))).await;
    let ClientEvent::Error(ClientError::Server(error)) = expired else { panic!("{expired:?}") };
    assert_eq!(error.code, 109);
    until(&mut events, |event| matches!(event, ClientEvent::Connected { .. })).await;
    client.close().await;
}

#[tokio::test]
async fn a_callback_without_access_ends_the_client() {
    let server = server(|_| {}).await;
    let config = ClientConfig::default().get_token(|| async { Err(GetTokenError::Unauthorized) });
    let client = Client::new(&url(&server), config).expect("an address");
    let mut events = client.events();
    client.connect();
    let end = until(&mut events, |event| matches!(event, ClientEvent::Disconnected { .. })).await;
    assert!(matches!(end, ClientEvent::Disconnected { code: 1, .. }), "{end:?}");
}

#[tokio::test]
async fn tokens_are_renewed_without_a_new_connection() {
    let server = server(|_| {}).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let config = ClientConfig::default().get_token(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        async { Ok(token(2, &[])) }
    });
    let client = Client::new(&url(&server), config).expect("an address");
    let mut events = client.events();
    client.connect();
    until(&mut events, |event| matches!(event, ClientEvent::Connected { .. })).await;
    let three_times = async || asked.load(Ordering::Relaxed) >= 3;
    fanwire_testing::wait_for_async(three_times, Duration::from_secs(30)).await;
    client.disconnect();
    let next = events.next().await;
    assert!(matches!(next, Some(ClientEvent::Disconnected { code: 0, .. })), "{next:?}");
}

#[tokio::test]
async fn the_code_of_a_disconnect_decides_whether_the_client_comes_back() {
    let server = server(|config| config.client.insecure = true).await;
    let client = Client::new(&url(&server), ClientConfig::default()).expect("an address");
    let mut events = client.events();
    client.connect();
    for code in [4000, 4500] {
        until(&mut events, |event| matches!(event, ClientEvent::Connected { .. })).await;
        let disconnect = Disconnect { code, reason: "moved".into() };
        server.handle().disconnect(ConnectionSelector::default(), disconnect).await.expect("sent");
    }
    let end = until(&mut events, |event| matches!(event, ClientEvent::Disconnected { .. })).await;
    assert_eq!(end, ClientEvent::Disconnected { code: 4500, reason: "moved".to_owned() });
}

#[tokio::test]
async fn what_the_history_lost_is_not_recovered() {
    let change = |config: &mut Config| {
        config.client.insecure = true;
        config.channel.without_namespace.history_size = 2;
    };
    let server = server(change).await;
    let client = Client::new(&url(&server), ClientConfig::default()).expect("an address");
    let news = client.new_subscription("news", SubscriptionConfig::default()).expect("the first");
    let mut events = news.events();
    client.connect();
    news.subscribe();
    assert!(!subscribed(&mut events).await.was_recovering);
    news.unsubscribe();
    until(&mut events, |event| matches!(event, SubscriptionEvent::Unsubscribed { .. })).await;
    for number in 0..5 {
        server.handle().publish("news", number.to_string()).await.expect("published");
    }
    news.subscribe();
    let again = subscribed(&mut events).await;
    assert!(again.was_recovering && !again.recovered, "{again:?}");
    server.handle().publish("news", "\"live\"").await.expect("published");
    assert_eq!(publications(&mut events, 1).await, ["\"live\""]);
}

#[tokio::test]
async fn a_filter_chooses_publications_by_their_tags() {
    let server = server(|config| config.client.insecure = true).await;
    for encoding in Encoding::ALL {
        let config = ClientConfig::default().encoding(encoding);
        let client = Client::new(&url(&server), config).expect("an address");
        let filter = FilterNode {
            key: "place".to_owned(),
            cmp: "eq".to_owned(),
            val: "here".to_owned(),
            ..FilterNode::default()
        };
        let config = SubscriptionConfig::default().filter(Some(filter));
        let news = client.new_subscription("tagged", config).expect("the first");
        let mut events = news.events();
        client.connect();
        news.subscribe();
        subscribed(&mut events).await;
        for (place, data) in [("there", "1"), ("here", "2"), ("there", "3"), ("here", "4")] {
            let tags = BTreeMap::from([("place".to_owned(), place.to_owned())]);
            let publication = Publication { data: data.into(), tags, ..Publication::default() };
            let options = PublicationOptions::default();
            let published = server.handle().publish_with("tagged", publication, options);
            published.await.expect("published");
        }
        assert_eq!(publications(&mut events, 2).await, ["2", "4"]);
        client.close().await;
    }
}

#[tokio::test]
async fn subscriptions_of_a_token_recover_over_a_lost_connection() {
    let server = server(|_| {}).await;
    let token = token(100, &["own".to_owned()]);
    let client =
        Client::new(&url(&server), ClientConfig::default().token(token)).expect("an address");
    let mut events = client.events();
    client.connect();
    until(&mut events, |event| matches!(event, ClientEvent::ServerSubscribed { .. })).await;
    let handle = server.handle();
    handle.publish("own", "1").await.expect("published");
    let is_publication =
        |event: &ClientEvent| matches!(event, ClientEvent::ServerPublication { .. });
    until(&mut events, is_publication).await;
    let disconnect = Disconnect { code: 4000, reason: "moved".into() };
    let of_user = ConnectionSelector { user: "ada".into(), ..ConnectionSelector::default() };
    handle.disconnect(of_user, disconnect).await.expect("sent");
    until(&mut events, |event| matches!(event, ClientEvent::Connecting { code: 4000, .. })).await;
    handle.publish("own", "2").await.expect("published");
    let second = until(&mut events, is_publication).await;
    let ClientEvent::ServerPublication { channel, publication, .. } = second else {
        panic!("{second:?}")
    };
    assert_eq!(channel, "own");
    assert_eq!(publication.offset, 2);
    client.close().await;
}

#[tokio::test]
async fn a_connection_with_tls_is_verified() {
    let authority = Authority::new();
    let change = |config: &mut Config| {
        config.client.insecure = true;
        config.http_server.tls = authority.server();
    };
    let server = server(change).await;
    let address = format!("wss://localhost:{}/connection/websocket", server.address().port());
    let tls = Arc::new(authority.client(&TLS13, None));
    dialogue::run(&address, &ClientConfig::default().tls(Some(tls)), "tls").await;

    let client = Client::new(&address, ClientConfig::default()).expect("an address");
    let mut events = client.events();
    client.connect();
    let error = until(&mut events, |event| matches!(event, ClientEvent::Error(_))).await;
    assert!(matches!(error, ClientEvent::Error(ClientError::Transport(_))), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_and_the_client_tries_again() {
    let url = format!("ws://127.0.0.1:{}/connection/websocket", fanwire_testing::free_port());
    let client = Client::new(&url, ClientConfig::default()).expect("an address");
    let mut events = client.events();
    client.connect();
    for _ in 0..2 {
        let error = until(&mut events, |event| matches!(event, ClientEvent::Error(_))).await;
        assert!(matches!(error, ClientEvent::Error(ClientError::Transport(_))), "{error:?}");
    }
}

#[tokio::test]
async fn another_path_is_an_error_with_its_status() {
    let server = server(|config| config.client.insecure = true).await;
    let url = format!("ws://{}/elsewhere", server.address());
    let client = Client::new(&url, ClientConfig::default()).expect("an address");
    let mut events = client.events();
    client.connect();
    let error = until(&mut events, |event| matches!(event, ClientEvent::Error(_))).await;
    assert_eq!(error, ClientEvent::Error(ClientError::Status { status: 404 }));
}
