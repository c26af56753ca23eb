//! Hooks of a program: grants, rejections, panics and calls that never return, with real sockets.
//! In: connects, subscribes, publishes and calls of clients → out: what hooks received, what clients received.
//! Uses the test client, a server with one shard.
//! Changed here: expectations of `hooks`. What a grant means is tested in `fanwire-node`.

use std::{
    future,
    net::SocketAddr,
    sync::{Arc, mpsc},
    time::Duration,
};

use fanwire::{
    Builder, ConnectEvent, ConnectGrant, Decision, Disconnect, DisconnectEvent, ErrorCode, Hook,
    Hooks, KeyMode, MapEvent, MapGrant, PublishEvent, PublishGrant, Rejection, RpcEvent, Server,
    SubscribeEvent, SubscribeGrant, config::Config,
};
use fanwire_node::options::{MapMode, SubscriptionType};

use tokio::sync::mpsc::unbounded_channel;

use crate::client::Client;

/// A server whose clients have the user that their data names.
async fn start(hooks: Hooks) -> Server {
    start_with(hooks, |_| {}).await
}

/// The same with other options.
async fn start_with(hooks: Hooks, change: impl FnOnce(&mut Config)) -> Server {
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.shards = 1;
    config.development = true; // disconnects say their cause
    config.shutdown.timeout = Duration::from_millis(500); // some clients do not answer the close
    change(&mut config);
    let connect = |event: ConnectEvent| async move {
        let user: String = serde_json::from_slice(&event.data).expect("a string");
        Ok(Some(ConnectGrant { user, ..ConnectGrant::default() }))
    };
    Builder::new(config).hooks(hooks.connect(connect)).start().await.expect("a free port is free")
}

async fn connected(address: SocketAddr, user: &str) -> Client {
    let mut client = Client::open(address, "").await;
    client.text(&format!(r#"{{"id":1,"connect":{{"data":"{user}"}}}}"#)).await;
    assert!(client.next_text().await.contains(r#"{"id":1,"connect":{"#));
    client
}

/// A hook of a type of one's own.
struct Rooms {
    open: Vec<&'static str>,
}

impl Hook<SubscribeEvent, Decision<SubscribeGrant>> for Rooms {
    async fn call(&self, event: SubscribeEvent) -> Decision<SubscribeGrant> {
        tokio::spawn(async {}).await.expect("an answer that comes later");
        if self.open.contains(&event.channel.as_str()) {
            let data = format!("{:?}", event.client.user).into();
            return Ok(Some(SubscribeGrant { data, ..SubscribeGrant::default() }));
        }
        Err(Disconnect { code: 4503, reason: "no such room".into() }.into())
    }
}

#[tokio::test]
async fn hooks_decide_about_connect_subscribe_publish_and_rpc() {
    let publish = |event: PublishEvent| async move {
        let data = format!(r#"{{"from":"{}"}}"#, event.client.user).into();
        Ok(Some(PublishGrant { data: Some(data), ..PublishGrant::default() }))
    };
    let rpc = |event: RpcEvent| async move { Ok(Some(event.data)) };
    let hooks = Hooks::new().subscribe(Rooms { open: vec!["red"] }).publish(publish).rpc(rpc);
    let server = start(hooks).await;
    let mut client = connected(server.address(), "ada").await;
    client.text(r#"{"id":2,"subscribe":{"channel":"red"}}"#).await;
    assert_eq!(client.next_text().await, r#"{"id":2,"subscribe":{"data":"ada"}}"#);
    client.text(r#"{"id":3,"rpc":{"method":"echo","data":[1,2]}}"#).await;
    assert_eq!(client.next_text().await, r#"{"id":3,"rpc":{"data":[1,2]}}"#);
    client.text(r#"{"id":4,"publish":{"channel":"red","data":1}}"#).await;
    let mut received = client.next_text().await;
    while !received.contains(r#""data":{"from":"ada"}"#) {
        received = client.next_text().await;
    }
    client.text(r#"{"id":5,"subscribe":{"channel":"blue"}}"#).await;
    assert_eq!(client.closed().await, (4503, "no such room".to_owned()));
    server.shutdown().await;
}

/// The hook refuses the key `no`, and puts the user before other keys; only that user removes them.
#[tokio::test]
async fn hooks_decide_about_changes_of_maps() {
    let key = |event: MapEvent| Some(format!("{}-{}", event.command.client.user, event.key));
    let publish = move |event: MapEvent| async move {
        if event.key == "no" {
            return Err(Rejection::Error(ErrorCode::TOO_MANY_REQUESTS.into()));
        }
        let key_mode = KeyMode::IfNew { refreshes: false };
        Ok(Some(MapGrant { key: key(event), key_mode, ..MapGrant::default() }))
    };
    let remove = move |event: MapEvent| async move {
        Ok(Some(MapGrant { key: key(event), ..MapGrant::default() }))
    };
    let hooks = Hooks::new().map_publish(publish).map_remove(remove);
    let server = start_with(hooks, |config| {
        let namespace = &mut config.channel.without_namespace;
        namespace.allow_subscribe_for_client = true;
        namespace.subscription_type = SubscriptionType::Map;
        namespace.map.mode = MapMode::Persistent;
    })
    .await;
    let mut client = connected(server.address(), "ada").await;
    client.text(r#"{"id":2,"subscribe":{"channel":"m","type":1,"phase":2}}"#).await;
    assert!(client.next_text().await.contains(r#""recoverable":true"#));
    client.text(r#"{"id":3,"publish":{"channel":"m","type":1,"key":"k","data":1}}"#).await;
    let text = client.text_until(r#"{"id":3,"publish":{}}"#).await;
    assert!(text.contains(r#""data":1"#) && text.contains(r#""key":"ada-k""#), "{text}");
    client.text(r#"{"id":4,"publish":{"channel":"m","type":1,"key":"no","data":1}}"#).await;
    assert!(client.next_text().await.contains(r#""code":111"#));
    client.text(r#"{"id":5,"publish":{"channel":"m","type":1,"key":"k","removed":true}}"#).await;
    let text = client.text_until(r#"{"id":5,"publish":{}}"#).await;
    assert!(text.contains(r#""key":"ada-k","removed":true"#), "{text}");
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_hook_that_panics_or_never_returns_ends_its_connection_alone() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(parking_lot::Mutex::new(blocked));
    let rpc = move |event: RpcEvent| {
        let blocked = Arc::clone(&blocked);
        async move {
            match event.method.as_str() {
                "panic" => panic!("on purpose"),
                "never" => future::pending().await,
                // Blocks its thread, which a hook must not do.
                "block" => drop(blocked.lock().recv()),
                _ => {}
            }
            Ok(Some("1".into()))
        }
    };
    let late = "internal server error: the rpc hook took longer than 2s";
    for (method, limit_s, reason) in [
        ("panic", 60, "internal server error: the rpc hook panicked"),
        ("never", 2, late),
        ("block", 2, late),
    ] {
        let time_limit = Duration::from_secs(limit_s);
        let server = start(Hooks::new().time_limit(time_limit).rpc(rpc.clone())).await;
        let mut other = connected(server.address(), "bob").await;
        let mut client = connected(server.address(), "ada").await;
        client.text(&format!(r#"{{"id":2,"rpc":{{"method":"{method}"}}}}"#)).await;
        other.text(r#"{"id":3,"rpc":{"method":"fine"}}"#).await;
        assert_eq!(other.next_text().await, r#"{"id":3,"rpc":{"data":1}}"#);
        assert_eq!(client.closed().await, (3004, reason.to_owned()));
        server.shutdown().await;
    }
    drop(release);
}

#[tokio::test]
async fn the_disconnect_hook_is_called_once_for_each_connected_client() {
    let (sender, mut ends) = unbounded_channel();
    let disconnect = move |event: DisconnectEvent| {
        let sender = sender.clone();
        async move { drop(sender.send((event.client.user, event.disconnect.code))) }
    };
    let server = start(Hooks::new().disconnect(disconnect)).await;
    let mut ended = connected(server.address(), "ended").await;
    drop(connected(server.address(), "gone").await);
    let mut stopped = connected(server.address(), "stopped").await;
    drop(Client::open(server.address(), "").await); // never connected
    ended.text("no command").await;
    assert_eq!(ended.closed().await.0, 3501);
    let mut codes = [ends.recv().await.expect("an end"), ends.recv().await.expect("an end")];
    codes.sort();
    assert_eq!(codes, [("ended".to_owned(), 3501), ("gone".to_owned(), 3000)]);
    let shutdown = tokio::spawn(server.shutdown());
    assert_eq!(stopped.closed().await.0, 3001);
    assert_eq!(ends.recv().await, Some(("stopped".to_owned(), 3001)));
    shutdown.await.expect("no panic");
}
