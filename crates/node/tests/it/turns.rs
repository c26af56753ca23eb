//! Messages of many commands: a session does some of them at once, and the others when its shard has looked at the rest.
//! In: messages of a thousand commands, publications, ends → out: who receives what before whom.
//! Uses: `world`. Never: threads, time; what lies in the inboxes arrives when the test says so.
//! Changed here: promises about fairness inside a hub. How a shell shares its turns is tested in the server.

use std::time::Duration;

use fanwire_broker::PublishOptions;
use fanwire_node::ConnectionSelector;
use fanwire_node::protocol::Disconnect;
use fanwire_protocol::Publication;

use crate::presence::with_presence;
use crate::script::hello;
use crate::world::{World, options};

/// Commands with these ids, in one message.
fn many(ids: std::ops::Range<u32>) -> String {
    let commands = ids.map(|id| format!(r#"{{"id":{id},"unsubscribe":{{"channel":"x"}}}}"#));
    commands.collect::<Vec<_>>().join("\n")
}

fn publish(world: &World) {
    let publication = Publication { data: "1".into(), ..Publication::default() };
    let published =
        world.node.channels().publish("news", publication, PublishOptions::default(), world.now);
    published.wait().expect("the memory broker never fails");
}

/// How many replies a peer heard, which have the next ids in order.
fn replies(world: &mut World, name: &str, next: &mut u32) -> u32 {
    let first = *next;
    while let Some(text) = world.heard(name) {
        assert_eq!(text, format!(r#"{{"id":{next},"unsubscribe":{{}}}}"#));
        *next += 1;
    }
    *next - first
}

fn world(encoding: &str) -> World {
    let mut world = World::with_shards(options(|_| {}), 1);
    for name in ["ada", "bob"] {
        world.connected(name, hello(encoding));
    }
    world.play(
        r#"
        bob > {"id":2,"subscribe":{"channel":"news"}}
        bob < {"id":2,"subscribe":{}}
    "#,
    );
    world
}

#[test]
fn a_message_of_many_commands_lets_others_have_their_turns_and_is_done_in_order() {
    for encoding in ["json", "protobuf"] {
        let mut world = world(encoding);
        let mut next = 2;
        world.say_unsettled("ada", &many(2..1000));
        assert_eq!(replies(&mut world, "ada", &mut next), AT_ONCE);
        world.say_unsettled("ada", &many(1000..1002));
        assert_eq!(replies(&mut world, "ada", &mut next), 0, "its first message is not done");
        publish(&world);
        world.settle();
        assert_eq!(replies(&mut world, "ada", &mut next), AT_ONCE);
        let heard = world.heard("bob").expect("the publication");
        assert!(heard.contains(r#""data":1"#), "{heard}");
        while !world.shards[0].mailbox.is_empty() {
            world.settle();
            assert!(replies(&mut world, "ada", &mut next) <= AT_ONCE + 1);
        }
        assert_eq!(next, 1002);
        world.say("ada", &many(1002..1003));
        assert_eq!(replies(&mut world, "ada", &mut next), 1);
    }
}

#[test]
fn commands_with_large_replies_take_turns_sooner() {
    let mut world = World::with_shards(with_presence(|_| {}), 1);
    world.connected("ada", hello("json"));
    for number in 0..100 {
        let name = format!("c{number}");
        world.connected(&name, hello("json"));
        world.say(&name, r#"{"id":2,"subscribe":{"channel":"room"}}"#);
    }
    let commands = (2..130).map(|id| format!(r#"{{"id":{id},"presence":{{"channel":"room"}}}}"#));
    world.say_unsettled("ada", &commands.collect::<Vec<_>>().join("\n"));
    let mut turns = Vec::new();
    loop {
        let replies: Vec<_> = std::iter::from_fn(|| world.heard("ada")).collect();
        let bytes: usize = replies.iter().map(String::len).sum();
        assert!(bytes <= (AT_ONCE as usize + 1) * 512, "{bytes} bytes in one turn");
        turns.push(replies.len());
        if world.shards[0].mailbox.is_empty() {
            break;
        }
        world.settle();
    }
    assert_eq!(turns.iter().sum::<usize>(), 128, "{turns:?}");
    assert!(turns.len() > 10, "{turns:?}");
}

#[test]
fn a_session_that_ends_between_its_commands_does_no_more_of_them() {
    let mut world = world("json");
    let mut next = 2;
    world.say_unsettled("ada", &many(2..1000));
    let ada =
        ConnectionSelector { client: world.id("ada").into(), ..ConnectionSelector::default() };
    assert_eq!(
        world.node.connections().disconnect(ada, Disconnect::FORCE_DISCONNECT).wait(),
        Ok(())
    );
    assert_eq!(replies(&mut world, "ada", &mut next), AT_ONCE);
    world.settle();
    let heard = std::iter::from_fn(|| world.heard("ada")).collect::<Vec<_>>();
    assert_eq!(heard.len() as u32, AT_ONCE + 1, "the order is behind its next turn");
    assert_eq!(heard.last().map(String::as_str), Some("x 3503 force disconnect"));
    world.settle();
    assert_eq!(world.heard("ada"), None);
    assert_eq!(world.node.counts().connections, 1);
}

#[test]
fn a_client_that_its_shell_does_not_read_is_not_silent() {
    let mut world = world("json");
    world.keeps_silent("ada");
    let key = world.key("ada");
    let now = world.now;
    world.shard_of("ada").hub.held(key, true, now);
    world.wait(Duration::from_secs(100));
    world.play("ada < {}\n ada receives nothing");
    let now = world.now;
    world.shard_of("ada").hub.held(key, false, now);
    world.play("wait 7900ms\n ada receives nothing\n wait 200ms\n ada x 3012 no pong");
}

/// Commands of one session that are done without a look at the inbox.
const AT_ONCE: u32 = 128;
