//! A server inside a program: its threads, its calls, its end.
//! In: calls from threads without a runtime → out: pushes and close frames at clients.
//! Uses the test client on a runtime of the test.
//! Changed here: expectations of `embedded` and `handle`.

use std::{net::TcpListener, thread, time::Duration};

use fanwire::{
    Builder, ConnectionSelector, DeliveryClass, Disconnect, EmbeddedServer, ErrorCode, Page,
    Publication, PublicationOptions, ServerSubscription, StartError,
    config::Config,
    room::{Place, Shape, View},
};
use tokio::{runtime::Runtime, time::timeout};

use crate::client::Client;

fn config() -> Config {
    let mut config = Config::default();
    config.http_server.address = "127.0.0.1".to_owned();
    config.http_server.port = 0;
    config.client.insecure = true;
    config.shards = 2;
    config.shutdown.timeout = Duration::from_millis(500); // some clients do not answer the close
    let namespace = &mut config.channel.without_namespace;
    namespace.presence = true;
    namespace.history_size = 10;
    namespace.history_ttl = Duration::from_secs(60);
    config
}

/// A runtime for the clients of a test; the server has its own.
fn clients() -> Runtime {
    Runtime::new().expect("a runtime")
}

#[test]
fn threads_publish_and_each_subscriber_gets_the_publications_of_a_thread_in_order() {
    const THREADS: usize = 4;
    const EACH: usize = 500;
    let server = EmbeddedServer::start(config()).expect("a free port is free");
    let clients = clients();
    let mut client = clients.block_on(Client::subscribed(server.address(), "", "a"));
    let publishers: Vec<_> = (0..THREADS)
        .map(|publisher| {
            let handle = server.handle();
            thread::spawn(move || {
                for number in 0..EACH {
                    handle
                        .publish("a", format!("[{publisher},{number}]"))
                        .wait()
                        .expect("published");
                }
            })
        })
        .collect();
    let mut next = [0; THREADS];
    clients.block_on(async {
        while next != [EACH; THREADS] {
            for push in client.next_text().await.lines() {
                let push: serde_json::Value = serde_json::from_str(push).expect("JSON");
                let data = &push["push"]["pub"]["data"];
                let [publisher, number] =
                    [0, 1].map(|at| data[at].as_u64().expect("a number") as usize);
                assert_eq!(number, next[publisher], "of publisher {publisher}");
                next[publisher] += 1;
            }
        }
    });
    publishers.into_iter().for_each(|publisher| publisher.join().expect("no panic"));
    server.shutdown();
}

#[test]
fn a_program_reads_history_and_presence_and_moves_connections() {
    let server = EmbeddedServer::start(config()).expect("a free port is free");
    let (handle, clients) = (server.handle(), clients());
    let mut client = clients.block_on(Client::subscribed(server.address(), "", "a"));
    let position = handle.publish("a", "1").wait().expect("published");
    assert_eq!(position.offset, 1);
    let page = Page { limit: None, ..Page::default() };
    let stream = handle.history("a", &page).wait().expect("a stream");
    assert_eq!(stream.publications.len(), 1);
    assert_eq!(handle.presence("a").wait().expect("members").len(), 1);
    assert_eq!(handle.presence_stats("a").wait().expect("numbers").clients, 1);
    assert_eq!(handle.channels("").wait().expect("channels")["a"], 1);
    assert_eq!(handle.counts().connections, 1);
    let all = ConnectionSelector::default;
    let subscription = ServerSubscription { channel: "b".into(), ..Default::default() };
    handle.subscribe(all(), subscription).wait().expect("subscribed");
    handle.publish("b", "2").wait().expect("published");
    handle.unsubscribe(all(), Some("a")).wait().expect("unsubscribed");
    let disconnect = Disconnect { code: 4000, reason: "moved".into() };
    handle.disconnect(all(), disconnect).wait().expect("disconnected");
    clients.block_on(async {
        let mut pushes = String::new();
        while !pushes.contains("\"unsubscribe\"") {
            pushes += &client.next_text().await;
        }
        assert!(pushes.contains(r#""channel":"b","pub":{"data":2"#), "{pushes}");
        assert_eq!(client.closed().await, (4000, "moved".to_owned()));
    });
    handle.remove_history("a").wait().expect("removed");
    assert!(handle.history("a", &page).wait().expect("a stream").publications.is_empty());
    server.shutdown();
}

#[test]
fn wrong_calls_are_answered_with_the_codes_of_the_server_api() {
    let mut config = config();
    config.channel.without_namespace.allow_positioning = true;
    let server = EmbeddedServer::start(config).expect("a free port is free");
    let handle = server.handle();
    let all = ConnectionSelector::default;
    assert_eq!(handle.publish("unknown:a", "1").wait(), Err(ErrorCode::UNKNOWN_CHANNEL));
    assert_eq!(handle.publish("", "1").wait(), Err(ErrorCode::BAD_REQUEST));
    for code in [0, 999, 1005, 1006, 1015, 5000] {
        let disconnect = Disconnect { code, reason: "".into() };
        assert_eq!(handle.disconnect(all(), disconnect).wait(), Err(ErrorCode::BAD_REQUEST));
    }
    let publication = Publication { data: "1".into(), ..Publication::default() };
    let options = PublicationOptions {
        delivery: Some(DeliveryClass::Latest),
        ..PublicationOptions::default()
    };
    assert_eq!(handle.publish_with("a", publication, options).wait(), Err(ErrorCode::BAD_REQUEST));
    server.shutdown();
}

#[test]
fn a_long_reason_of_a_disconnect_is_cut_to_what_a_close_frame_can_hold() {
    let server = EmbeddedServer::start(config()).expect("a free port is free");
    let clients = clients();
    let mut client = clients.block_on(Client::subscribed(server.address(), "", "a"));
    let disconnect = Disconnect { code: 4001, reason: "é".repeat(1000).into() };
    server.handle().disconnect(ConnectionSelector::default(), disconnect).wait().expect("sent");
    assert_eq!(clients.block_on(client.closed()), (4001, "é".repeat(61)));
    server.shutdown();
}

#[test]
fn a_given_listener_is_used_and_closed_at_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port is free");
    let address = listener.local_addr().expect("an address");
    let mut config = config();
    config.http_server.address = "not an address".to_owned();
    let server =
        Builder::new(config).listener(listener).start_embedded().expect("the listener is bound");
    assert_eq!(server.address(), address);
    let clients = clients();
    let mut client = clients.block_on(Client::subscribed(address, "", "a"));
    let end = thread::spawn(move || server.shutdown());
    clients.block_on(async {
        assert_eq!(client.closed().await, (3001, "shutdown".to_owned()));
        client.frame(0x88, &[0x0b, 0xb9]).await;
    });
    end.join().expect("no panic");
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_dropped_server_closes_its_clients() {
    let server = EmbeddedServer::start(config()).expect("a free port is free");
    let (handle, clients) = (server.handle(), clients());
    let mut client = clients.block_on(Client::subscribed(server.address(), "", "a"));
    drop(server);
    assert_eq!(clients.block_on(client.closed()), (3001, "shutdown".to_owned()));
    assert!(handle.publish("a", "1").wait().is_ok(), "without subscribers, without effect");
}

#[tokio::test]
async fn it_starts_and_stops_inside_a_runtime_too() {
    let server = EmbeddedServer::start(config()).expect("a free port is free");
    server.handle().publish("a", "1").await.expect("published");
    server.shutdown();
}

#[test]
fn an_address_in_use_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port is free");
    let mut config = config();
    config.http_server.port = taken.local_addr().expect("an address").port();
    assert!(matches!(EmbeddedServer::start(config), Err(StartError::Bind { .. })));
}

#[test]
fn a_program_moves_views_and_publishes_at_places() {
    let mut config = config();
    let namespace = &mut config.channel.without_namespace;
    namespace.areas.tile_size = 10;
    let server = EmbeddedServer::start(config).expect("a free port is free");
    let (handle, clients) = (server.handle(), clients());
    let mut client = clients.block_on(Client::subscribed(server.address(), "", "a"));
    let members = handle.presence("a").wait().expect("members");
    let view = View { x: 5.0, y: 5.0, layer: 0, shape: Shape::Circle { radius: 1.0 }, margin: 0.0 };
    handle.set_view(&members[0].client, "a", view).expect("a view");
    let push = clients.block_on(async {
        loop {
            for (x, data) in [(15.0, "1"), (5.0, "2")] {
                handle
                    .publish_at(Place { x, y: 5.0, layer: 0 }, "a", data)
                    .await
                    .expect("published");
            }
            // The shard of the client may not have handled the view before these.
            if let Ok(push) = timeout(Duration::from_millis(20), client.next_text()).await {
                return push;
            }
        }
    });
    assert!(
        !push.contains("\"data\":1") && push.contains(r#""channel":"a","pub":{"data":2"#),
        "{push}"
    );
    assert_eq!(handle.set_view("nobody", "a", view), Err(ErrorCode::BAD_REQUEST));
    server.shutdown();
}
