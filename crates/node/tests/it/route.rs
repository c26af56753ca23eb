//! The route of one message (ARCHITECTURE.md) as far as it runs through protocol and node: steps 3 to 7 of the U.
//! In: the bytes of one publish command → out: the bytes every subscriber shares.
//! Uses: hubs and inboxes by hand. Never: sockets; the server walks the steps before 3 and after 7.
//! Changed here: the walk.

use std::sync::Arc;

use fanwire_node::{Broadcast, Notice};
use fanwire_protocol::{Commands, Encoding, Request};

use crate::script::hello;
use crate::world::{Effect, Record, World, options};

const COMMAND: &[u8] = br#"{"id":3,"publish":{"channel":"news","data":{"text":"hi"}}}"#;

#[test]
fn the_route_of_one_message() {
    // Three shards: ada, who publishes, is alone on the first; bob and eve listen on the others.
    let mut world = three_shards();

    // In: bytes gain meaning.
    step_3_protocol_reads_a_command();
    step_4_session_takes_it(&mut world);
    // The bend.
    let (broadcast, notices) = step_5_broker_and_door_fill_the_inboxes(&world);
    // Out: meaning becomes bytes.
    step_6_hubs_know_who_gets_it(&mut world, &broadcast, notices);
    step_7_protocol_writes_the_envelope_once(&world, &broadcast);
}

fn three_shards() -> World {
    let mut world = World::with_shards(options(|_| {}), 3);
    for (name, words) in [("ada", "json"), ("bob", "protobuf"), ("eve", "json")] {
        world.connected(name, hello(words));
    }
    for name in ["bob", "eve"] {
        world.play(&format!(
            r#"{name} > {{"id":2,"subscribe":{{"channel":"news"}}}}
               {name} < {{"id":2,"subscribe":{{}}}}"#
        ));
    }
    world
}

fn step_3_protocol_reads_a_command() {
    let command = Commands::new(Encoding::Json, COMMAND).next().expect("one in the frame");
    let (id, request) = command.expect("which decodes").into_request();
    assert!(id == 3 && matches!(&request, Request::Publish(publish) if publish.channel == "news"));
}

/// The publisher gets its reply, and nothing else happens on its shard.
fn step_4_session_takes_it(world: &mut World) {
    let key = world.key("ada");
    let now = world.now;
    let mut record = Record::default();
    world.shards[0].hub.receive(key, COMMAND, now, &mut record);
    let [(0, Effect::Message(reply))] = record.effects.as_slice() else {
        panic!("one reply to connection 0");
    };
    assert_eq!(reply, br#"{"id":3,"publish":{}}"#);
}

/// One broadcast lies in the inbox of each shard that listens, and it is the same one.
fn step_5_broker_and_door_fill_the_inboxes(world: &World) -> (Arc<Broadcast>, [Notice; 2]) {
    assert!(world.shards[0].mailbox.take().is_empty(), "nobody listens on the first shard");
    let notices = [1, 2].map(|shard| {
        let mut notices = world.shards[shard].mailbox.take();
        assert_eq!(notices.len(), 1, "one notice for shard {shard}");
        notices.remove(0)
    });
    let [Notice::Broadcast(one), Notice::Broadcast(other)] = &notices else {
        panic!("broadcasts");
    };
    assert!(Arc::ptr_eq(one, other));
    assert_eq!(one.accepted_at(), world.now);
    let publisher = one.publication().info.as_ref().map(|info| info.client.as_str());
    assert_eq!(publisher, Some(world.id("ada")));
    (Arc::clone(one), notices)
}

fn step_6_hubs_know_who_gets_it(
    world: &mut World,
    broadcast: &Arc<Broadcast>,
    notices: [Notice; 2],
) {
    for (shard, notice) in [1, 2].into_iter().zip(notices) {
        let mut record = Record::default();
        world.shards[shard].hub.notice(notice, world.now, &mut record);
        let [(0, Effect::Publication(delivered, _))] = record.effects.as_slice() else {
            panic!("one delivery to connection 0 of shard {shard}");
        };
        assert!(Arc::ptr_eq(delivered, broadcast));
    }
}

/// Once per encoding, whoever asks.
fn step_7_protocol_writes_the_envelope_once(world: &World, broadcast: &Broadcast) {
    for encoding in Encoding::ALL {
        let message = broadcast.message(encoding).expect("the data is JSON");
        assert!(std::ptr::eq(message, broadcast.message(encoding).expect("still")));
    }
    let message = broadcast.message(Encoding::Json).expect("the data is JSON");
    let text = r#"{"push":{"channel":"news","pub":{"data":{"text":"hi"},"info":{"user":"","client":"ADA"}}}}"#;
    assert_eq!(message[..], text.replace("ADA", world.id("ada")).into_bytes()[..]);
}
