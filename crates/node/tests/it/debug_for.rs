//! Events of listed users, channels and addresses: lines of the log, and logs of the flight recorder that stay.
//! In: dialogues of listed clients and others, a log that stores its lines → out: what the lines are about.
//! Uses: `world`, `script`, the log of `refusals.rs`. Never: sockets; addresses are tested in the unit tests.
//! Changed here: tests of what is logged. Limits of the list are tested in `debug_list/tests.rs`.

use fanwire_node::broker::PublishOptions;
use fanwire_node::protocol::Publication;
use fanwire_node::questions::{ConnectionLogQuery, ConnectionLogQuestion};
use fanwire_node::{DebugForCommand, Options, options::DebugForOptions};
use tracing::Level;

use crate::history::with_history;
use crate::refusals::{Line, logged};
use crate::script::hello;
use crate::world::{UNIX, World};

/// Names of debug lines: the message and the user or the channel.
fn about(lines: &[Line]) -> Vec<String> {
    let debug = lines.iter().filter(|line| line["level"] == "DEBUG");
    let text = |line: &Line, field: &str| line.get(field).cloned().unwrap_or_default();
    debug.map(|line| format!("{} {}", line["message"], text(line, "user"))).collect()
}

fn command(users: &[&str], channels: &[&str], until: u64) -> DebugForCommand {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    DebugForCommand { users: texts(users), channels: texts(channels), addresses: Vec::new(), until }
}

fn play(world: &mut World) {
    for (name, words) in [("ada", "as 42"), ("bob", "as 43")] {
        world.open(name, hello(words));
        world.say(name, r#"{"id":1,"connect":{}}"#);
        world.say(name, r#"{"id":2,"subscribe":{"channel":"news"}}"#);
    }
    world.close("ada");
    world.close("bob");
}

#[test]
fn the_events_of_a_listed_user_are_logged_until_the_end() {
    let lines = logged(Level::INFO, with_history(|_| {}), |world| {
        let sent = world.node.diagnostics().debug_for(command(&["42"], &[], UNIX + 5));
        assert_eq!(sent.expect("there is room").wait(), Ok(Vec::new()));
        play(world);
        world.wait(std::time::Duration::from_secs(6));
        world.node.tick(world.now);
        play(world);
    });
    assert_eq!(about(&lines), ["connect 42", "command 42", "subscribe 42", "close 42"]);
}

#[test]
fn the_events_of_a_listed_channel_are_those_of_all_its_subscribers() {
    let lines = logged(Level::INFO, with_history(|_| {}), |world| {
        let sent = world.node.diagnostics().debug_for(command(&[], &["news"], UNIX + 5));
        assert_eq!(sent.expect("there is room").wait(), Ok(Vec::new()));
        play(world);
        for channel in ["news", "chat"] {
            let publication = Publication { data: "1".into(), ..Publication::default() };
            let node = &world.node;
            let options = PublishOptions::default();
            let published = node.channels().publish(channel, publication, options, world.now);
            assert!(published.wait().is_ok());
        }
    });
    let of = |user| [format!("command {user}"), format!("subscribe {user}")];
    assert_eq!(about(&lines), [&of("42")[..], &of("43"), &["publication ".to_owned()]].concat());
}

#[test]
fn lines_name_their_numbers_and_what_becomes_of_publications() {
    let options = with_history(|open| {
        open.force_recovery = true;
        open.allow_tags_filter = true;
    });
    let lines = logged(Level::DEBUG, options, |world| {
        let sent = world.node.diagnostics().debug_for(command(&["42"], &[], UNIX + 500));
        assert!(sent.expect("there is room").wait().is_ok());
        world.open("ada", hello("as 42"));
        world.say("ada", r#"{"id":1,"connect":{"name":"js","version":"5"}}"#);
        world.say(
            "ada",
            r#"{"id":2,"subscribe":{"channel":"news","recover":true,"offset":9,"epoch":"other"}}"#,
        );
        let tagged =
            r#"{"id":3,"subscribe":{"channel":"chat","tf":{"key":"k","cmp":"eq","val":"v"}}}"#;
        world.say("ada", tagged);
        world.connected("bob", hello("as 43"));
        world.say("bob", r#"{"id":2,"subscribe":{"channel":"news"}}"#);
        for channel in ["news", "chat"] {
            world.publish(channel, "{}");
        }
        world.say("ada", r#"{"id":4,"publish":{"channel":"nowhere:1","data":{}}}"#);
        world.close("ada");
    });
    let find = |message: &str| {
        let found = lines.iter().filter(|line| line["message"] == message);
        let mut found = found
            .filter(|line| line.get("user").is_some_and(|user| user == "42"))
            .cloned()
            .collect::<Vec<_>>();
        found.iter_mut().for_each(|line| {
            ["id", "level", "message"].iter().for_each(|field| drop(line.remove(*field)));
        });
        found
    };
    let line = |fields: &[(&str, &str)]| -> Line {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(find("connect"), [line(&[("user", "42"), ("app", "js"), ("version", "5")])]);
    let unrecovered =
        [("user", "42"), ("channel", "news"), ("cause", "epoch"), ("from", "9"), ("to", "0")];
    assert_eq!(find("unrecovered"), [line(&unrecovered)]);
    let delivery = |channel, outcome| {
        line(&[("user", "42"), ("channel", channel), ("offset", "1"), ("outcome", outcome)])
    };
    assert_eq!(find("delivery"), [delivery("news", "delivered"), delivery("chat", "filtered")]);
    let refused = &find("refuse")[0];
    assert_eq!([&refused["command"], &refused["code"]], ["publish", "102"]);
    assert!(lines.iter().all(|line| !line.contains_key("first") && !line.contains_key("text")));
}

#[test]
fn a_reload_lists_others() {
    let listing = |user: &str| Options {
        debug_for: DebugForOptions { users: vec![user.into()], ..DebugForOptions::default() },
        ..with_history(|_| {})
    };
    let lines = logged(Level::INFO, listing("42"), |world| {
        world.node.reload(listing("43"), |_, _| {}).expect("valid");
        play(world);
    });
    assert_eq!(about(&lines), ["connect 43", "command 43", "subscribe 43", "close 43"]);
}

#[test]
fn a_listed_user_has_a_log_whatever_the_memory() {
    let mut world = World::new(Options { recorder_memory_max: 0, ..with_history(|_| {}) });
    let sent = world.node.diagnostics().debug_for(command(&["42"], &[], UNIX + 5));
    assert_eq!(sent.expect("there is room").wait(), Ok(Vec::new()));
    play(&mut world);
    let query = ConnectionLogQuery { limit: 10, ..ConnectionLogQuery::default() };
    let node = world.node.clone();
    let answer = node.ask(ConnectionLogQuestion::from(query), world.now);
    world.settle();
    let answers = answer.wait().expect("the shards have answered").found.nodes;
    let users: Vec<_> = answers.iter().flat_map(|it| &it.logs).map(|log| &*log.user).collect();
    assert_eq!(users, ["42"]);
}
