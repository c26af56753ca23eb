//! Channels with places: who receives what is published where, and what happens to tiles when views move or end.
//! In: dialogues, views, publications at places → out: what each client received, and what the node counts.
//! Uses: `world`, `script`. Never: the objects of tiles, which `fanwire-area` tests.
//! Changed here: tests of views and tiles.

use std::collections::BTreeSet;

use fanwire_broker::{ClientId, PublishOptions};
use fanwire_node::Options;
use fanwire_node::area::{Grid, Place, Shape, Tile, View};
use fanwire_node::options::AreaOptions;
use fanwire_protocol::{ErrorCode, Publication};
use proptest::prelude::*;

use crate::world::{World, options};

/// Tiles of 10, views of at most 16 of them.
fn spatial() -> Options {
    options(|options| {
        options.channel.without_namespace.areas =
            AreaOptions { tile_size: 10, tiles_max: 16, rings: Vec::new() };
    })
}

fn publish_at(world: &mut World, x: f64, data: &'static str) -> Result<(), ErrorCode> {
    let publication = Publication { data: data.into(), ..Publication::default() };
    let place = Place { x, y: 5.0, layer: 0 };
    let now = world.now;
    let published = world
        .node
        .channels()
        .publish_at(place, "a", publication, PublishOptions::default(), now)
        .wait();
    world.settle();
    published.map(drop)
}

fn circle(x: f64, radius: f64) -> View {
    View { x, y: 5.0, layer: 0, shape: Shape::Circle { radius }, margin: 2.0 }
}

fn look(world: &mut World, name: &str, x: f64, radius: f64) -> Result<(), ErrorCode> {
    let client = ClientId::parse(world.id(name)).expect("an id");
    let result = world.node.connections().set_view(client, "a", circle(x, radius));
    world.settle();
    result
}

const ADA: &str = r#"ada opens
    ada > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a","data":{"view":{"x":5,"y":5,"radius":1,"margin":2}}}}
    ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
    ada < {"id":2,"subscribe":{}}"#;

#[test]
fn a_viewer_receives_what_is_published_in_its_tiles_and_everything_without_a_place() {
    let mut world = World::new(spatial());
    world.play(ADA);
    publish_at(&mut world, 9.0, "1").expect("a place");
    publish_at(&mut world, 11.0, "2").expect("a place");
    world.play(
        r#"api > a 3
           ada < {"push":{"channel":"a","pub":{"data":1}}}
           ada < {"push":{"channel":"a","pub":{"data":3}}}"#,
    );
    look(&mut world, "ada", 9.5, 1.0).expect("a view");
    publish_at(&mut world, 11.0, "4").expect("a place");
    look(&mut world, "ada", 11.5, 1.0).expect("a view");
    publish_at(&mut world, 9.0, "5").expect("within the margin");
    look(&mut world, "ada", 15.0, 1.0).expect("a view");
    publish_at(&mut world, 9.0, "6").expect("left");
    world.play(
        r#"ada < {"push":{"channel":"a","pub":{"data":4}}}
           ada < {"push":{"channel":"a","pub":{"data":5}}}"#,
    );
    let channels = world.node.list_channels("", world.now).wait().expect("channels");
    assert_eq!(channels.into_keys().collect::<Vec<_>>(), ["a"], "tiles are not shown");
}

#[test]
fn a_place_in_a_ring_is_not_in_the_view_and_its_tile_has_a_channel_of_its_own() {
    let mut options = spatial();
    options.channel.without_namespace.areas.rings = vec!["10/5".to_owned()];
    let mut world = World::new(options);
    world.play(ADA);
    publish_at(&mut world, 5.0, "1").expect("a place");
    publish_at(&mut world, 12.0, "2").expect("a place");
    let publish_in_ring = |x: i32, data: &'static str| {
        let publication = Publication { data: data.into(), ..Publication::default() };
        let tile = Tile { x, y: 0, layer: 0, ring: 1 };
        let now = world.now;
        let channels = world.node.channels();
        channels.publish_in(tile, "a", publication, PublishOptions::default(), now).wait()
    };
    publish_in_ring(0, "3").expect("a tile");
    publish_in_ring(1, "4").expect("a tile");
    world.settle();
    world.play(
        r#"ada < {"push":{"channel":"a","pub":{"data":1}}}
           ada < {"push":{"channel":"a","pub":{"data":4}}}"#,
    );
}

#[test]
fn impossible_views_and_places_have_codes() {
    let mut world = World::new(spatial());
    for view in
        [r#"{"x":1,"y":2}"#, r#"{"x":1,"y":2,"radius":-1}"#, r#"{"x":1,"y":2,"radius":100}"#]
    {
        world.play(&format!(
            r#"ada opens
               ada > {{"id":1,"connect":{{}}}}\n{{"id":2,"subscribe":{{"channel":"a","data":{{"view":{view}}}}}}}
               ada < {{"id":1,"connect":{{"client":"ada","version":"test","ping":25,"pong":true}}}}
               ada < {{"id":2,"error":{{"code":107,"message":"bad request"}}}}
               ada closes"#
        ));
    }
    world.play(ADA);
    for (x, radius) in
        [(f64::NAN, 1.0), (f64::INFINITY, 1.0), (0.0, f64::INFINITY), (0.0, 1e9), (1e300, 1.0)]
    {
        assert_eq!(look(&mut world, "ada", x, radius), Err(ErrorCode::BAD_REQUEST), "{x} {radius}");
    }
    for x in [f64::NAN, f64::NEG_INFINITY, 1e300] {
        assert_eq!(publish_at(&mut world, x, "1"), Err(ErrorCode::BAD_REQUEST));
    }
    publish_at(&mut world, 5.0, "1").expect("a place");
    world.play(r#"ada < {"push":{"channel":"a","pub":{"data":1}}}"#);
    let client = ClientId::from_bytes([0; 16]);
    assert_eq!(
        world.node.connections().set_view(client, "a", circle(0.0, 1.0)),
        Ok(()),
        "no such client"
    );
    let flat = World::new(options(|_| {}));
    assert_eq!(
        flat.node.connections().set_view(client, "a", circle(0.0, 1.0)),
        Err(ErrorCode::BAD_REQUEST)
    );
}

#[test]
fn nothing_is_left_of_a_view_when_its_subscription_ends() {
    for end in [
        "ada > {\"id\":3,\"unsubscribe\":{\"channel\":\"a\"}}\n ada < {\"id\":3,\"unsubscribe\":{}}",
        "ada closes",
        "api unsubscribes",
    ] {
        let mut world = World::new(spatial());
        world.play(
            r#"ada opens
               ada > {"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"b"}}
               ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
               ada < {"id":2,"subscribe":{}}
               ada > {"id":3,"subscribe":{"channel":"a"}}
               ada < {"id":3,"subscribe":{}}
               ada > {"id":4,"subscribe":{"channel":"c"}}
               ada < {"id":4,"subscribe":{}}"#,
        );
        look(&mut world, "ada", 10.0, 12.0).expect("a view");
        assert!(world.node.counts().subscriptions > 4);
        if end == "api unsubscribes" {
            let target = fanwire_node::ConnectionSelector::default();
            world.node.connections().unsubscribe(target, None).wait().expect("sent");
            world.settle();
            world.play(
                r#"ada < {"push":{"channel":"c","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
                   ada < {"push":{"channel":"a","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}
                   ada < {"push":{"channel":"b","unsubscribe":{"code":2000,"reason":"server unsubscribe"}}}"#,
            );
        } else {
            world.play(end);
        }
        let left = if end.contains("unsubscribe\":") { 2 } else { 0 };
        assert_eq!(world.node.counts().subscriptions, left, "{end}");
        publish_at(&mut world, 10.0, "1").expect("a place");
        assert_eq!(world.unread(), []);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Look(usize, f64, f64),
    Publish(f64),
    Unsubscribe(usize),
    Subscribe(usize),
    Other(usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let viewer = 0..3_usize;
    let x = || -40.0..40.0_f64;
    prop_oneof![
        3 => (viewer.clone(), x(), 0.0..12.0_f64).prop_map(|(viewer, x, radius)| Step::Look(viewer, x, radius)),
        4 => x().prop_map(Step::Publish),
        1 => viewer.clone().prop_map(Step::Unsubscribe),
        1 => viewer.clone().prop_map(Step::Subscribe),
        1 => (viewer, any::<bool>()).prop_map(|(viewer, begins)| Step::Other(viewer, begins)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Each viewer receives exactly what is published in its tiles, whatever else begins and ends around them.
    #[test]
    fn random_walks_receive_what_is_in_view(steps in prop::collection::vec(step(), 1..60)) {
        const NAMES: [&str; 3] = ["ada", "bob", "eve"];
        let mut world = World::new(spatial());
        let grid = Grid::new(10, 16);
        let mut tiles: [Option<BTreeSet<_>>; 3] = Default::default();
        for name in NAMES {
            world.open(name, crate::script::hello(""));
            world.say(name, r#"{"id":1,"connect":{}}"#);
        }
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Look(viewer, x, radius) => {
                    look(&mut world, NAMES[viewer], x, radius).expect("a view");
                    if let Some(tiles) = &mut tiles[viewer] {
                        let current: Vec<_> = tiles.iter().copied().collect();
                        let change = grid.change(&circle(x, radius), &current).expect("a view");
                        tiles.retain(|tile| !change.left.contains(tile));
                        tiles.extend(change.entered);
                    }
                }
                Step::Subscribe(viewer) => {
                    world.say(NAMES[viewer], r#"{"id":2,"subscribe":{"channel":"a"}}"#);
                    tiles[viewer].get_or_insert_default();
                }
                Step::Unsubscribe(viewer) => {
                    world.say(NAMES[viewer], r#"{"id":3,"unsubscribe":{"channel":"a"}}"#);
                    tiles[viewer] = None;
                }
                Step::Other(viewer, begins) => {
                    let command = if begins { "subscribe" } else { "unsubscribe" };
                    world.say(NAMES[viewer], &format!(r#"{{"id":4,"{command}":{{"channel":"b"}}}}"#));
                }
                Step::Publish(x) => {
                    for name in NAMES {
                        while world.heard(name).is_some() {}
                    }
                    let place = Place { x, y: 5.0, layer: 0 };
                    let data = number.to_string();
                    let publication = Publication { data: data.clone().into(), ..Publication::default() };
                    let now = world.now;
                    let published = world.node.channels().publish_at(place, "a", publication, PublishOptions::default(), now);
                    published.wait().expect("a place");
                    world.settle();
                    let tile = grid.tile_of(place).expect("a place");
                    for (name, tiles) in NAMES.iter().zip(&tiles) {
                        let sees = tiles.as_ref().is_some_and(|tiles| tiles.contains(&tile));
                        let expected = sees.then(|| format!(r#"{{"push":{{"channel":"a","pub":{{"data":{data}}}}}}}"#));
                        prop_assert_eq!(world.heard(name), expected);
                        prop_assert_eq!(world.heard(name), None);
                    }
                }
            }
        }
    }
}
