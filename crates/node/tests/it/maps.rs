//! Map channels of a node: the route of a change, engines without maps. What clients get there is in `maps/`.
//! In: scripts of clients and calls of the node → out: replies, pushes, errors.
//! Uses `world` and `script`. Never: HTTP; `crates/api` tests the methods of the server API.
//! Changed here: tests of maps in the node. What an engine promises is tested in the crate `broker`.

mod bad_input;
mod model;
mod presence;
mod publish;
mod subscribe;

pub(crate) use self::subscribe::maps;

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::map::{MapPublish, StateQuery};
use fanwire_node::options::{MapMode, MapOptions, Namespace, Options, SubscriptionType};
use fanwire_node::protocol::{ErrorCode, Publication};
use fanwire_node::{Node, NodeParts};

use crate::publish::Unreachable;
use crate::script::hello;
use crate::world::{World, options};

fn options_of(subscription_type: SubscriptionType) -> Options {
    let key_ttl = Duration::from_secs(60);
    let map = MapOptions { mode: MapMode::Ephemeral, key_ttl, ..MapOptions::default() };
    options(|options| {
        let namespace = &mut options.channel.without_namespace;
        *namespace = Namespace { subscription_type, map, ..namespace.clone() };
    })
}

fn value(key: &str, data: &'static str) -> MapPublish {
    let publication = Publication { key: key.into(), data: data.into(), ..Publication::default() };
    MapPublish { publication, ..MapPublish::default() }
}

/// A reload makes the channel of a subscriber a map.
#[test]
fn a_change_of_a_map_takes_the_route_of_a_publication() {
    let mut world = World::new(options_of(SubscriptionType::Stream));
    world.connected("ada", hello("json"));
    world.play(
        "ada > {\"id\":2,\"subscribe\":{\"channel\":\"a\"}}\n ada < {\"id\":2,\"subscribe\":{}}",
    );
    let published = world.node.channels().published();
    world.node.reload(options_of(SubscriptionType::Map), |_, _| {}).expect("valid options");
    for key in ["k", "k", "l"] {
        let outcome = world.node.maps().publish("a", value(key, "[1]"), world.now).wait();
        assert_eq!(outcome.expect("available").expect("nothing to refuse").suppression, None);
    }
    world.settle();
    let push =
        |key| format!(r#"ada < {{"push":{{"channel":"a","pub":{{"data":[1],"key":"{key}"}}}}}}"#);
    world.play(&[push("k"), push("k"), push("l")].join("\n"));
    assert_eq!(world.node.channels().published(), published + 3);
    let page = world.node.maps().read_state("a", &StateQuery::default(), world.now).wait();
    let entries = page.expect("available").entries;
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| entry.time > 0), "entries have their time, pushes do not");
}

#[test]
fn keys_have_1_to_255_bytes() {
    let world = World::new(options_of(SubscriptionType::Map));
    for (length, is_valid) in [(0, false), (1, true), (255, true), (256, false)] {
        let publish = value(&"k".repeat(length), "1");
        let outcome = world.node.maps().publish("a", publish, world.now).wait();
        let is_refused = outcome == Err(ErrorCode::BAD_REQUEST);
        assert_eq!(is_refused, !is_valid, "{length}");
    }
}

#[test]
fn an_engine_without_maps_is_108() {
    let now = Instant::now();
    let options = options_of(SubscriptionType::Map);
    let parts = NodeParts::with_broker(|_| Arc::new(Unreachable));
    let node = Node::with_parts(options, now, 0, parts);
    let node = node.expect("valid options");
    assert_eq!(node.maps().stats("a", now).wait(), Err(ErrorCode::NOT_AVAILABLE));
    let refused = node.maps().publish("a", value("k", "1"), now).wait();
    assert_eq!(refused, Err(ErrorCode::NOT_AVAILABLE));
}
