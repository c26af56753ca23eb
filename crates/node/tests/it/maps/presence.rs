//! Presence as maps: who is subscribed to a channel, by client and by user (protocol §27).
//! In: scripts of clients → out: replies and pushes, word for word.
//! Uses `world` and `script`. Never: the presence of streams.
//! Changed here: dialogues of subscribers and of those who watch them.

use std::time::Duration;

use fanwire_node::options::{MapMode, MapOptions, Namespace, Options, SubscriptionType};

use crate::script::play_in_both;
use crate::world::options;

/// Streams whose subscribers are entries of maps.
fn watched() -> Options {
    let map = |name: &str, subscription_type| Namespace {
        name: name.into(),
        subscription_type,
        allow_subscribe_for_client: true,
        allow_subscribe_for_anonymous: true,
        map: MapOptions {
            mode: MapMode::Ephemeral,
            key_ttl: Duration::from_secs(60),
            ..MapOptions::default()
        },
        ..Namespace::default()
    };
    options(|options| {
        let clients = map("clients", SubscriptionType::MapClients);
        let users = map("users", SubscriptionType::MapUsers);
        options.channel.namespaces = vec![clients, users];
        let rooms = &mut options.channel.without_namespace;
        rooms.map_clients_presence_channel_prefix = "clients:".into();
        rooms.map_users_presence_channel_prefix = "users:".into();
    })
}

const CONNECTED: &str = r#"
    ada opens as 42
    ada > {"id":1,"connect":{}}
    ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
    bob opens
    bob > {"id":1,"connect":{}}
    bob < {"id":1,"connect":{"client":"bob","version":"test","ping":25,"pong":true}}
"#;

#[test]
fn clients_come_and_go_and_users_expire() {
    play_in_both(
        &watched(),
        &format!(
            r#"{CONNECTED}
            bob > {{"id":2,"subscribe":{{"channel":"clients:room","type":2,"phase":2}}}}
            bob < {{"id":2,"subscribe":{{"type":1}}}}
            bob > {{"id":3,"subscribe":{{"channel":"users:room","type":3,"phase":2}}}}
            bob < {{"id":3,"subscribe":{{"type":1}}}}
            ada > {{"id":2,"subscribe":{{"channel":"room"}}}}
            ada < {{"id":2,"subscribe":{{}}}}
            bob < {{"push":{{"channel":"clients:room","pub":{{"info":{{"user":"42","client":"ada"}},"key":"ada"}}}}}}
            bob < {{"push":{{"channel":"users:room","pub":{{"key":"42"}}}}}}
            wait 120s
            node ticks
            bob receives nothing
            ada > {{"id":3,"unsubscribe":{{"channel":"room"}}}}
            ada < {{"id":3,"unsubscribe":{{}}}}
            bob < {{"push":{{"channel":"clients:room","pub":{{"key":"ada","removed":true}}}}}}
            wait 60s
            node ticks
            bob < {{"push":{{"channel":"users:room","pub":{{"key":"42","removed":true}}}}}}
            bob > {{"id":4,"subscribe":{{"channel":"room"}}}}
            bob < {{"id":4,"subscribe":{{}}}}
            bob < {{"push":{{"channel":"clients:room","pub":{{"info":{{"user":"","client":"bob"}},"key":"bob"}}}}}}
        "#
        ),
    );
}

#[test]
fn a_client_whose_connection_ends_is_gone_at_once() {
    play_in_both(
        &watched(),
        &format!(
            r#"{CONNECTED}
            ada > {{"id":2,"subscribe":{{"channel":"room"}}}}
            ada < {{"id":2,"subscribe":{{}}}}
            bob > {{"id":2,"subscribe":{{"channel":"clients:room","type":2,"phase":2}}}}
            bob < {{"id":2,"subscribe":{{"type":1,"state":[{{"info":{{"user":"42","client":"ada"}},"key":"ada"}}]}}}}
            ada closes
            bob < {{"push":{{"channel":"clients:room","pub":{{"key":"ada","removed":true}}}}}}
        "#
        ),
    );
}

#[test]
fn clients_do_not_write_who_is_present() {
    play_in_both(
        &watched(),
        &format!(
            r#"{CONNECTED}
            ada > {{"id":2,"publish":{{"channel":"clients:room","type":1,"key":"k","data":1}}}}
            ada < {{"id":2,"error":{{"code":103,"message":"permission denied"}}}}
            ada > {{"id":3,"subscribe":{{"channel":"clients:room","type":1,"phase":2}}}}
            ada < {{"id":3,"error":{{"code":103,"message":"permission denied"}}}}
        "#
        ),
    );
}
