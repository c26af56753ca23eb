//! Reloads while clients are connected: what commands follow, and what subscriptions keep.
//! In: dialogues before and after new options → out: what each peer received.
//! Uses: `world`, `script`, signed tokens. Never: files; `fanwire-config` decides which options change.
//! Changed here: the effect of a reload on sessions. Handshakes and the API key are tested in the server.

use std::cell::RefCell;

use fanwire_node::options::Namespace;
use fanwire_node::{NamespaceId, Options};

use crate::script::hello;
use crate::tokens::{connect, guarded};
use crate::world::{World, options};

fn with_namespaces(names: &[&str]) -> Options {
    options(|options| {
        let open = options.channel.without_namespace.clone();
        let namespaces =
            names.iter().map(|name| Namespace { name: (*name).to_owned(), ..open.clone() });
        options.channel.namespaces = namespaces.collect();
    })
}

fn reload(world: &World, options: Options) {
    world.node.reload(options, |_, _| {}).expect("the options are valid");
}

#[test]
fn a_removed_namespace_keeps_its_subscribers_and_gets_no_new_ones() {
    let mut world = World::new(with_namespaces(&["chat", "news"]));
    for name in ["ada", "bob"] {
        world.connected(name, hello("json"));
    }
    world.play(
        r#"ada > {"id":2,"subscribe":{"channel":"chat:1"}}
           ada < {"id":2,"subscribe":{}}"#,
    );
    reload(&world, with_namespaces(&["news"]));
    world.play(
        r#"bob > {"id":2,"subscribe":{"channel":"chat:1"}}
           bob < {"id":2,"error":{"code":102,"message":"unknown channel"}}
           bob > {"id":3,"subscribe":{"channel":"news:1"}}
           bob < {"id":3,"subscribe":{}}"#,
    );
    reload(&world, with_namespaces(&["price", "chat"]));
    world.publish("chat:1", "1");
    world.play(
        r#"ada < {"push":{"channel":"chat:1","pub":{"data":1}}}
           bob > {"id":4,"subscribe":{"channel":"price:1"}}
           bob < {"id":4,"subscribe":{}}"#,
    );
    world.publish("price:1", "2");
    world.play(r#"bob < {"push":{"channel":"price:1","pub":{"data":2}}}"#);
}

#[test]
fn namespaces_keep_their_ids() {
    let world = World::new(with_namespaces(&["chat", "news"]));
    let ids = RefCell::new(Vec::new());
    let record = |id: NamespaceId, namespace: &Namespace| {
        ids.borrow_mut().push((id.0, namespace.name.clone()));
    };
    world.node.reload(with_namespaces(&["price", "news"]), record).expect("valid");
    let expected = [(0, String::new()), (3, "price".to_owned()), (2, "news".to_owned())];
    assert_eq!(ids.into_inner(), expected);
    assert_eq!(world.node.namespace_names(), ["", "chat", "news", "price"]);
}

#[test]
fn more_new_namespaces_than_ids_are_refused_and_nothing_changes() {
    let mut world = World::new(with_namespaces(&["chat"]));
    let names: Vec<String> = (0..257).map(|number| format!("more{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let error = world.node.reload(with_namespaces(&names), |_, _| {}).expect_err("too many");
    assert!(error.to_string().contains("channel.namespaces"), "{error}");
    world.connected("ada", hello("json"));
    world.play(
        r#"ada > {"id":2,"subscribe":{"channel":"chat:1"}}
           ada < {"id":2,"subscribe":{}}"#,
    );
    reload(&world, with_namespaces(&names[..256]));
}

#[test]
fn tokens_are_checked_with_the_new_key() {
    let mut world = World::new(guarded(|_| {}));
    let ada = connect(r#"{"sub":"42"}"#);
    world.play(&format!(
        r#"ada opens json
           ada > {ada}
           ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}"#
    ));
    reload(&world, guarded(|options| options.client.token.hmac_secret_key = "other".into()));
    world.play(&format!("bob opens json\n bob > {ada}\n bob x 3500 invalid token"));
    let both = guarded(|options| {
        options.client.token.hmac_previous_secret_key = crate::tokens::SECRET.into();
        options.client.token.hmac_secret_key = "other".into();
    });
    reload(&world, both);
    world.play(&format!(
        r#"eve opens json
           eve > {ada}
           eve < {{"id":1,"connect":{{"client":"eve","version":"test","ping":25,"pong":true}}}}"#
    ));
}

#[test]
fn limits_apply_to_the_next_command() {
    let mut world = World::new(options(|_| {}));
    world.connected("ada", hello("json"));
    world.play(
        r#"ada > {"id":2,"subscribe":{"channel":"one"}}
           ada < {"id":2,"subscribe":{}}"#,
    );
    reload(&world, options(|options| options.client.channel_limit = 1));
    world.play(
        r#"ada > {"id":3,"subscribe":{"channel":"two"}}
           ada < {"id":3,"error":{"code":106,"message":"limit exceeded"}}"#,
    );
}

#[test]
fn an_invalid_option_changes_nothing() {
    let mut world = World::new(options(|_| {}));
    let invalid = options(|options| options.client.channel_limit = 0);
    let error = world.node.reload(invalid, |_, _| panic!("nothing is prepared"));
    assert!(error.is_err());
    world.connected("ada", hello("json"));
    world.play(
        r#"ada > {"id":2,"subscribe":{"channel":"one"}}
           ada < {"id":2,"subscribe":{}}"#,
    );
}
