//! Another node takes over while clients are connected: what they receive is as if nothing had happened.
//! In: dialogues with a move in the middle, random ones with several → out: the same as without.
//! Uses: `world`, `script`. Never: records; `hub/takeover/tests.rs` has their fields.
//! Changed here: what clients may notice of a move. `play_in_both` plays each of its scripts with moves, too.

use std::time::Duration;

use fanwire_broker::PublishOptions;
use fanwire_node::options::{BatchOptions, Rate};
use fanwire_node::{ConnectionSelector, Counts, Options, Renewal, ServerSubscription};
use fanwire_protocol::{Disconnect, Publication};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::script::hello;
use crate::world::{World, options};

/// What happens in a random dialogue. Clients are numbered in the order in which they connect.
#[derive(Clone, Debug)]
enum Step {
    Connect,
    /// A command of a client, without its id.
    Say {
        who: usize,
        command: &'static str,
        channel: u8,
    },
    /// A subscribe that recovers from an offset in the epoch that the client knows.
    Recover {
        who: usize,
        channel: u8,
        offset: u64,
    },
    Publish {
        channel: u8,
        tag: u8,
        key: u8,
    },
    PublishWithout {
        who: usize,
        channel: u8,
    },
    RemoveHistory {
        channel: u8,
    },
    Close {
        who: usize,
    },
    Disconnect {
        who: usize,
    },
    Subscribe {
        who: usize,
        channel: u8,
        lifetime_s: u64,
    },
    Unsubscribe {
        who: usize,
        channel: u8,
    },
    Refresh {
        who: usize,
        lifetime_s: u64,
    },
    Wait {
        seconds: u64,
    },
    Move,
}

impl Step {
    /// Whether it may happen to several connections at the same moment, in an order that is not promised.
    fn is_for_several(&self) -> bool {
        matches!(self, Self::Wait { .. })
    }
}

const COMMANDS: [&str; 8] = [
    r#""subscribe":{"channel":"CHANNEL"}"#,
    r#""subscribe":{"channel":"CHANNEL","tf":{"key":"tag","cmp":"eq","val":"1"}}"#,
    r#""unsubscribe":{"channel":"CHANNEL"}"#,
    r#""publish":{"channel":"CHANNEL","data":{"from":"a client"}}"#,
    r#""presence":{"channel":"CHANNEL"}"#,
    r#""presence_stats":{"channel":"CHANNEL"}"#,
    r#""history":{"channel":"CHANNEL","limit":-1}"#,
    r#""rpc":{"method":"none"}"#,
];

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..6usize;
    let channel = || 0..3u8;
    let command = || prop::sample::select(&COMMANDS[..]);
    let lifetime_s = || 1..100u64;
    prop_oneof![
        4 => Just(Step::Connect),
        16 => (who(), command(), channel())
            .prop_map(|(who, command, channel)| Step::Say { who, command, channel }),
        3 => (who(), channel(), 0..6u64)
            .prop_map(|(who, channel, offset)| Step::Recover { who, channel, offset }),
        8 => (channel(), 0..3u8, 0..4u8)
            .prop_map(|(channel, tag, key)| Step::Publish { channel, tag, key }),
        1 => (who(), channel()).prop_map(|(who, channel)| Step::PublishWithout { who, channel }),
        1 => channel().prop_map(|channel| Step::RemoveHistory { channel }),
        1 => who().prop_map(|who| Step::Close { who }),
        1 => who().prop_map(|who| Step::Disconnect { who }),
        3 => (who(), channel(), lifetime_s())
            .prop_map(|(who, channel, lifetime_s)| Step::Subscribe { who, channel, lifetime_s }),
        1 => (who(), channel()).prop_map(|(who, channel)| Step::Unsubscribe { who, channel }),
        1 => (who(), lifetime_s())
            .prop_map(|(who, lifetime_s)| Step::Refresh { who, lifetime_s }),
        4 => (1..40u64).prop_map(|seconds| Step::Wait { seconds }),
        4 => Just(Step::Move),
    ]
}

/// Everything that a session or the memory of a node can have, in one kind of channel.
fn rich() -> Options {
    options(|options| {
        let open = &mut options.channel.without_namespace;
        open.history_size = 4;
        open.history_ttl = Duration::from_secs(90);
        open.force_recovery = true;
        open.allow_history_for_client = true;
        open.allow_history_for_anonymous = true;
        open.presence = true;
        open.allow_presence_for_client = true;
        open.allow_presence_for_anonymous = true;
        open.join_leave = true;
        open.force_push_join_leave = true;
        open.allow_tags_filter = true;
        let rate = Rate { limit: 3, interval: Duration::from_secs(10) };
        open.publish_rate = rate;
        open.subscribe_rate = rate;
        options.client.command_rate = Rate { limit: 10, ..rate };
        options.client.refusal_rate = Rate { limit: 20, ..rate };
        options.client.channel_limit = 2;
    })
}

/// A dialogue in a world of its own.
struct Dialogue {
    world: World,
    connected: usize,
    commands: u32,
    transcript: Vec<String>,
}

impl Dialogue {
    /// Plays the steps, with their moves or without. Returns what each client received after each step, and the counts.
    fn play(steps: &[Step], has_moves: bool) -> Vec<String> {
        let mut world = World::new(rich());
        world.wait(Duration::from_millis(500)); // no step ends when something is due: timers are rounded
        let mut dialogue = Self { world, connected: 0, commands: 0, transcript: Vec::new() };
        for step in steps {
            match step {
                Step::Move if has_moves => assert!(dialogue.world.take_over(), "all can move"),
                step => dialogue.step(step),
            }
            dialogue.listen(step.is_for_several());
        }
        dialogue.transcript
    }

    fn step(&mut self, step: &Step) {
        let now = self.world.now;
        match *step {
            Step::Connect => {
                let who = self.connected;
                self.connected += 1;
                let encoding = ["json", "protobuf", "json frame_ping"][who % 3];
                self.world.open(&name(who), hello(&format!("{encoding} as {who}")));
                self.say(who, r#""connect":{}"#);
            }
            Step::Say { who, command, channel } => {
                self.say(who, &command.replace("CHANNEL", &channel.to_string()));
            }
            Step::Recover { who, channel, offset } => {
                let known = self.world.epochs.get(usize::from(channel)).cloned();
                let epoch = known.unwrap_or_default();
                let position = format!(r#""recover":true,"offset":{offset},"epoch":"{epoch}""#);
                self.say(who, &format!(r#""subscribe":{{"channel":"{channel}",{position}}}"#));
            }
            Step::Publish { channel, tag, key } => {
                let publication = Publication {
                    data: self.transcript.len().to_string().into(),
                    tags: [("tag".to_owned(), tag.to_string())].into(),
                    ..Publication::default()
                };
                let idempotency_key = ["", "a", "b", "c"][usize::from(key)].to_owned();
                let options = PublishOptions { idempotency_key, ..PublishOptions::default() };
                self.publish(channel, publication, options);
            }
            Step::PublishWithout { who, channel } => {
                let id = self.world.try_id(&name(who)).unwrap_or_default();
                let exclude_client = fanwire_broker::ClientId::parse(id);
                let options = PublishOptions { exclude_client, ..PublishOptions::default() };
                let publication = Publication { data: "\"x\"".into(), ..Publication::default() };
                self.publish(channel, publication, options);
            }
            Step::RemoveHistory { channel } => {
                let removed = self.world.node.channels().remove_history(&channel.to_string(), now);
                removed.wait().expect("channels have a history");
            }
            Step::Close { who } => {
                if who < self.connected {
                    self.world.close(&name(who));
                }
            }
            Step::Disconnect { who } => {
                let connections = self.world.node.connections();
                drop(connections.disconnect(user_of(who), Disconnect::FORCE_RECONNECT));
            }
            Step::Subscribe { who, channel, lifetime_s } => {
                let channel = channel.to_string().into();
                let expire_at = Some(self.world.node.unix(now) + lifetime_s);
                let wanted = ServerSubscription { channel, expire_at, ..Default::default() };
                drop(self.world.node.connections().subscribe(user_of(who), wanted, now));
            }
            Step::Unsubscribe { who, channel } => {
                let connections = self.world.node.connections();
                drop(connections.unsubscribe(user_of(who), Some(&channel.to_string())));
            }
            Step::Refresh { who, lifetime_s } => {
                let expire_at = Some(self.world.node.unix(now) + lifetime_s);
                let renewal = Renewal { expire_at, ..Renewal::default() };
                drop(self.world.node.connections().refresh(user_of(who), renewal));
            }
            Step::Wait { seconds } => self.world.wait(Duration::from_secs(seconds)),
            Step::Move => {}
        }
        self.world.rest();
    }

    fn say(&mut self, who: usize, command: &str) {
        if who < self.connected {
            self.commands += 1;
            let id = self.commands;
            self.world.say(&name(who), &format!("{{\"id\":{id},{command}}}"));
        }
    }

    fn publish(&mut self, channel: u8, publication: Publication, options: PublishOptions) {
        let now = self.world.now;
        let channels = self.world.node.channels();
        let position = channels.publish(&channel.to_string(), publication, options, now).wait();
        let offset = position.expect("memory never fails").offset;
        self.transcript.push(format!("published at {offset}"));
    }

    /// Writes down what each client received.
    fn listen(&mut self, is_in_any_order: bool) {
        let begin = self.transcript.len();
        for who in 0..self.connected {
            while let Some(text) = self.world.heard(&name(who)) {
                let message = self.world.without_epochs(&text);
                // Members of a presence have no order; those of a JSON value have one.
                let value = serde_json::from_str::<serde_json::Value>(&message);
                let sorted = value.map_or(message, |value| value.to_string());
                self.transcript.push(format!("{} receives {sorted}", name(who)));
            }
        }
        if is_in_any_order {
            self.transcript[begin..].sort();
        }
        // Histories that are over are freed when somebody reads them, and checks of positions do.
        let counts = Counts { history_bytes: 0, ..self.world.node.counts() };
        self.transcript.push(format!("{counts:?}"));
    }
}

fn name(who: usize) -> String {
    format!("client{who}")
}

/// Each client is a user, because the order in which the connections of one user get a command is not promised.
fn user_of(who: usize) -> ConnectionSelector {
    ConnectionSelector { user: who.to_string(), ..ConnectionSelector::default() }
}

proptest! {
    #[test]
    fn clients_notice_no_move(steps in vec(step(), 1..60)) {
        let unmoved = Dialogue::play(&steps, false);
        let moved = Dialogue::play(&steps, true);
        for (number, (moved, unmoved)) in moved.iter().zip(&unmoved).enumerate() {
            prop_assert_eq!(moved, unmoved, "line {}", number);
        }
        prop_assert_eq!(moved.len(), unmoved.len());
    }
}

#[test]
fn the_first_publication_after_a_move_is_in_full_and_the_next_one_a_patch() {
    let mut world = World::new(options(|options| {
        let open = &mut options.channel.without_namespace;
        open.allowed_delta_types = vec!["fossil".into()];
        open.delta_publish = true;
        open.history_size = 10;
        open.history_ttl = Duration::from_secs(60);
        open.force_positioning = true;
    }));
    world.connected("ada", hello("json"));
    world.play_line(r#"ada > {"id":2,"subscribe":{"channel":"a","delta":"fossil"}}"#);
    assert!(world.heard("ada").expect("a reply").contains(r#""delta":true"#));
    let is_patch = |world: &mut World, number: u32| {
        world.publish("a", &format!(r#"{{"n":{number},"text":"quite the same as before"}}"#));
        world.heard("ada").expect("a publication").contains(r#""delta":true"#)
    };
    assert!(!is_patch(&mut world, 1));
    assert!(is_patch(&mut world, 2));
    assert!(world.take_over());
    assert!(!is_patch(&mut world, 3));
    assert!(is_patch(&mut world, 4));
}

#[test]
fn publications_that_wait_for_others_arrive_before_a_move() {
    let mut world = World::new(options(|options| {
        let max_delay = Duration::from_secs(1);
        options.channel.without_namespace.delivery.batch =
            BatchOptions { max_size: 10, max_delay, flush_latest: false };
    }));
    world.play(
        r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
        ada > {"id":2,"subscribe":{"channel":"a"}}
        ada < {"id":2,"subscribe":{}}
        api > a 1
        ada receives nothing
        node moves
        ada < {"push":{"channel":"a","pub":{"data":1}}}
        wait 2s
        ada receives nothing
    "#,
    );
}
