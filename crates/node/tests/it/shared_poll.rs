//! Shared poll channels: tracked keys, cycles, who gets a value, removals, epochs, expiry (protocol §28).
//! In: scripts of clients, answers of a backend → out: replies and pushes, word for word, and what the backend was asked.
//! Uses `world` and `script`, a hook as the backend. Never: a proxy.
//! Changed here: dialogues of shared polls. When a key is polled is tested in the crate `policy`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanwire_broker::{Answer, Promise};
use fanwire_node::NodeParts;
use fanwire_node::auth::{Secret, TrackClaim, sign_track};
use fanwire_node::hooks::{Hook, Hooks, PollEvent, Rejection, SubscribeEvent, SubscribeGrant};
use fanwire_node::options::{Options, SubscriptionType};
use fanwire_node::shared_poll::{DirectPublish, PollAnswer, PollItem, PollMode};

use crate::world::{UNIX, World, options};

/// A node with one kind of shared poll, and its backend.
struct Subject {
    world: World,
    calls: Calls,
}

type Calls = Arc<Mutex<VecDeque<(PollEvent, Promise<Option<PollAnswer>, Rejection>)>>>;

impl Subject {
    fn new(mode: PollMode, change: impl FnOnce(&mut Options)) -> Self {
        Self::with_hooks(Hooks::default(), mode, change)
    }

    fn with_hooks(hooks: Hooks, mode: PollMode, change: impl FnOnce(&mut Options)) -> Self {
        let options = options(|options| {
            options.shared_poll.hmac_secret_key = secret();
            let namespace = &mut options.channel.without_namespace;
            namespace.subscription_type = SubscriptionType::SharedPoll;
            namespace.shared_poll.mode = mode;
            namespace.shared_poll.max_keys_per_connection = 3;
            change(options);
        });
        let calls = Calls::default();
        let received = Arc::clone(&calls);
        let hook = Hook::new(move |event| {
            let (promise, answer) = Answer::later();
            received.lock().expect("no test panics").push_back((event, promise));
            answer
        });
        let hooks = Hooks { shared_poll_refresh: Some(hook), ..hooks };
        let world = World::with_parts(options, NodeParts { hooks, ..NodeParts::default() }, 2);
        let mut subject = Self { world, calls };
        for name in ["ada", "bob"] {
            subject.open(name);
        }
        subject
    }

    /// A client connects and subscribes to the channel `p`.
    fn open(&mut self, name: &str) {
        let world = &mut self.world;
        world.play(&format!("{name} opens"));
        world.say(name, r#"{"id":1,"connect":{}}"#);
        world.say(name, r#"{"id":2,"subscribe":{"channel":"p","type":4}}"#);
        assert!(world.heard(name).is_some_and(|reply| reply.contains("connect")));
        assert!(world.heard(name).is_some_and(|reply| reply.contains(r#""type":4"#)));
    }

    /// Plays a script, in which `ada tracks a:0,b:7` stands for a signed request that is answered.
    fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_once(" tracks ") {
                Some((name, items)) => {
                    let request = track(items, UNIX + 1000);
                    let ttl = UNIX + 1000 - self.world.node.unix(self.world.now);
                    self.world.say(name, &request);
                    let reply =
                        format!(r#"{{"id":9,"sub_refresh":{{"expires":true,"ttl":{ttl}}}}}"#);
                    assert_eq!(self.world.heard(name), Some(reply), "at: {line}");
                }
                None => self.world.play_line(line),
            }
        }
        assert_eq!(self.world.unread(), [], "heard, but not in the script");
    }

    /// Runs the polls. Returns each call as `a:0 b:7`.
    fn run(&mut self) -> Vec<String> {
        let before = self.calls.lock().expect("no test panics").len();
        let polls = Arc::clone(self.world.node.shared_polls());
        polls.run(self.world.now);
        self.world.settle();
        let calls = self.calls.lock().expect("no test panics");
        let text = |(event, _): &(PollEvent, _)| {
            let keys = event.keys.iter().map(|(key, version)| format!("{key}:{version}"));
            keys.collect::<Vec<_>>().join(" ")
        };
        calls.iter().skip(before).map(text).collect()
    }

    /// The backend answers the first call.
    fn answer(&mut self, epoch: &str, items: &[(&str, u64, &'static str)]) {
        let (_, promise) = self.calls.lock().expect("no test panics").pop_front().expect("a call");
        let item = |(key, version, data): &(&str, u64, &'static str)| PollItem {
            key: (*key).to_owned(),
            data: (*data).into(),
            version: *version,
            is_removed: data.is_empty(),
        };
        let items = items.iter().map(item).collect();
        promise.keep(Ok(Some(PollAnswer { items, epoch: epoch.to_owned() })));
        assert!(self.run().is_empty(), "an answer makes no call");
    }

    fn wait(&mut self, seconds: u64) {
        self.world.wait(Duration::from_secs(seconds));
    }

    fn publish(&mut self, key: &str, version: u64, data: &'static str) -> Result<(), u32> {
        let epoch = String::new();
        let publish = DirectPublish { key: key.into(), data: data.into(), version, epoch };
        let published =
            self.world.node.channels().publish_value("p", publish, self.world.now).wait();
        self.world.settle();
        published.map_err(|error| error.code)
    }
}

fn secret() -> Secret {
    "a secret of tests".into()
}

/// A request that tracks `a:0,b:7`, with a signature until then.
fn track(items: &str, expires_at: u64) -> String {
    let batch = batch(items, expires_at);
    format!(r#"{{"id":9,"sub_refresh":{{"channel":"p","type":1,"track":[{batch}]}}}}"#)
}

/// The signed batch of such a request.
fn batch(items: &str, expires_at: u64) -> String {
    let items: Vec<_> = items.split(',').filter_map(|item| item.split_once(':')).collect();
    let keys: Vec<_> = items.iter().map(|(key, _)| *key).collect();
    let claim = TrackClaim { user: "", channel: "p", keys: &keys };
    let signature = sign_track(&secret(), claim, UNIX, expires_at).expect("a secret, and no NUL");
    let json = |(key, version): &(&str, &str)| format!(r#"{{"key":"{key}","version":{version}}}"#);
    let keyed = items.iter().map(json).collect::<Vec<_>>().join(",");
    format!(r#"{{"signature":"{signature}","items":[{keyed}]}}"#)
}

#[test]
fn a_key_is_polled_once_for_all_and_a_value_goes_to_those_who_track_it() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    subject.play("ada tracks a:0,b:0");
    subject.play("bob tracks a:0");
    let calls = subject.run();
    assert!(calls == ["a:0 b:0"] || calls == ["b:0 a:0"], "{calls:?}");
    subject.answer("", &[("a", 5, "1"), ("b", 7, "2")]);
    subject.play(
        r#"
        ada < {"push":{"channel":"p","pub":{"data":1,"key":"a","version":5}}}
        ada < {"push":{"channel":"p","pub":{"data":2,"key":"b","version":7}}}
        bob < {"push":{"channel":"p","pub":{"data":1,"key":"a","version":5}}}
    "#,
    );
    subject.wait(10);
    assert_eq!(subject.run(), Vec::<String>::new(), "it was polled since the cycle began");
    subject.wait(10);
    assert_eq!(subject.run(), ["a:5 b:7"]);
    subject.answer("", &[("a", 5, "1"), ("b", 8, "3")]);
    subject.play(r#"ada < {"push":{"channel":"p","pub":{"data":3,"key":"b","version":8}}}"#);
}

#[test]
fn who_tracks_a_key_later_gets_its_value_without_a_call() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    subject.play("ada tracks a:0");
    assert_eq!(subject.run(), ["a:0"]);
    subject.answer("", &[("a", 5, "1")]);
    subject.play(
        r#"
        ada < {"push":{"channel":"p","pub":{"data":1,"key":"a","version":5}}}
        bob tracks a:4
        bob < {"push":{"channel":"p","pub":{"data":1,"key":"a","version":5}}}
        bob tracks a:5
        bob receives nothing
        bob tracks a:0
        bob < {"push":{"channel":"p","pub":{"data":1,"key":"a","version":5}}}
    "#,
    );
    assert_eq!(subject.run(), Vec::<String>::new());
}

#[test]
fn the_node_counts_versions_and_says_its_epoch() {
    let mut subject = Subject::new(PollMode::Versionless, |_| {});
    subject.world.play("cid opens");
    subject.world.say("cid", r#"{"id":1,"connect":{}}"#);
    subject.world.say("cid", r#"{"id":2,"subscribe":{"channel":"p","type":4}}"#);
    subject.world.heard("cid");
    let reply = subject.world.heard("cid").expect("a reply");
    assert!(reply.contains(r#""epoch":""#) && reply.contains(r#""type":4"#), "{reply}");
    subject.play("ada tracks a:0");
    assert_eq!(subject.run(), ["a:0"]);
    subject.answer("", &[("a", 0, "1")]);
    subject.play(r#"ada < {"push":{"channel":"p","pub":{"data":1,"key":"a","version":1}}}"#);
}

#[test]
fn untracked_keys_and_those_of_clients_that_left_are_polled_no_longer() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    subject.play("ada tracks a:1,b:1,c:1");
    subject.play(
        r#"
        ada > {"id":4,"sub_refresh":{"channel":"p","type":2,"untrack":["a","unknown"]}}
        ada < {"id":4,"sub_refresh":{}}
        bob tracks d:1
        ada > {"id":5,"unsubscribe":{"channel":"p"}}
        ada < {"id":5,"unsubscribe":{}}
    "#,
    );
    subject.run();
    subject.wait(10);
    assert_eq!(subject.run(), ["d:0"]);
    subject.answer("", &[]);
    subject.play("bob closes");
    subject.run();
    subject.wait(20);
    assert_eq!(subject.run(), Vec::<String>::new());
}

#[test]
fn a_removed_key_is_tracked_no_longer() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    subject.play("ada tracks a:0");
    assert_eq!(subject.run(), ["a:0"]);
    subject.answer("", &[("a", 0, "")]);
    subject.play(r#"ada < {"push":{"channel":"p","pub":{"key":"a","removed":true}}}"#);
    subject.run();
    subject.wait(20);
    assert_eq!(subject.run(), Vec::<String>::new());
}

#[test]
fn a_request_is_checked_in_this_order() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    let too_many = track("a:0,b:0,c:0,d:0", UNIX + 1000);
    let expired = track("a:0", UNIX - 6);
    let late = track("a:0", UNIX - 5);
    let foreign = track("a:0", UNIX + 1000).replace(r#""key":"a""#, r#""key":"b""#);
    subject.play(&format!(
        r#"
        ada > {{"id":3,"sub_refresh":{{"channel":"q","type":1}}}}
        ada < {{"id":3,"error":{{"code":103,"message":"permission denied"}}}}
        ada > {{"id":3,"sub_refresh":{{"channel":"p","type":1}}}}
        ada < {{"id":3,"error":{{"code":107,"message":"bad request"}}}}
        ada > {{"id":3,"sub_refresh":{{"channel":"p","type":2}}}}
        ada < {{"id":3,"error":{{"code":107,"message":"bad request"}}}}
        ada > {{"id":3,"sub_refresh":{{"channel":"p"}}}}
        ada < {{"id":3,"error":{{"code":107,"message":"bad request"}}}}
        ada > {too_many}
        ada < {{"id":9,"error":{{"code":106,"message":"limit exceeded"}}}}
        ada > {foreign}
        ada < {{"id":9,"error":{{"code":103,"message":"permission denied"}}}}
        ada > {expired}
        ada < {{"id":9,"error":{{"code":109,"message":"token expired"}}}}
        ada > {late}
        ada < {{"id":9,"sub_refresh":{{"expires":true}}}}
        ada > {{"id":3,"subscribe":{{"channel":"q"}}}}
        ada < {{"id":3,"error":{{"code":103,"message":"permission denied"}}}}
        ada > {{"id":3,"subscribe":{{"channel":"q","type":4,"tf":{{"key":"a","cmp":"ex"}}}}}}
        ada < {{"id":3,"error":{{"code":107,"message":"bad request"}}}}
    "#
    ));
}

#[test]
fn keys_leave_some_time_after_their_signature_expired() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    let short = track("a:1", UNIX + 10);
    subject.play(&format!(
        r#"
        ada tracks b:1
        ada > {short}
        ada < {{"id":9,"sub_refresh":{{"expires":true,"ttl":10}}}}
    "#
    ));
    subject.run();
    subject.wait(35);
    assert_eq!(subject.run(), ["a:0 b:0"], "whose versions only the client knows");
    subject.answer("", &[]);
    subject.wait(25);
    subject.run();
    subject.wait(10);
    subject.run();
    let asked = subject.calls.lock().expect("no test panics");
    let keys = asked.iter().map(|(event, _)| event.keys.len()).next_back();
    assert_eq!(keys, Some(1), "only b");
}

#[test]
fn values_are_sent_whole_to_a_client_that_asks_for_deltas() {
    let mut subject = Subject::new(PollMode::Versioned, |options| {
        let namespace = &mut options.channel.without_namespace;
        namespace.allowed_delta_types = vec!["fossil".into()];
        namespace.delta_publish = true;
    });
    subject.play(
        r#"
        ada > {"id":3,"unsubscribe":{"channel":"p"}}
        ada < {"id":3,"unsubscribe":{}}
        ada > {"id":4,"subscribe":{"channel":"p","type":4,"delta":"fossil"}}
        ada < {"id":4,"subscribe":{"type":4}}
        ada tracks a:0
    "#,
    );
    let value = r#"{"price":12,"currency":"EUR"}"#;
    for version in [5, 6] {
        // The cycle after a poll leaves the key out once.
        while subject.run().is_empty() {
            subject.wait(10);
        }
        subject.answer("", &[("a", version, value)]);
        subject.play(&format!(
            r#"ada < {{"push":{{"channel":"p","pub":{{"data":{value},"key":"a","version":{version}}}}}}}"#
        ));
    }
}

/// Values have no tags, so a filter on a tag hides all of them.
#[test]
fn a_filter_of_the_server_applies_to_values() {
    let grant = |event: SubscribeEvent| {
        let is_filtered = event.data == "1";
        let filter = if is_filtered { r#"{"key":"team","cmp":"ex"}"# } else { "" };
        let server_tags_filter = filter.into();
        Answer::now(Ok(Some(SubscribeGrant { server_tags_filter, ..SubscribeGrant::default() })))
    };
    let mut subject = Subject::with_hooks(
        Hooks { subscribe: Some(Hook::new(grant)), ..Hooks::default() },
        PollMode::Versioned,
        |options| options.channel.without_namespace.shared_poll.publish_enabled = true,
    );
    subject.play(
        r#"ada > {"id":3,"unsubscribe":{"channel":"p"}}
           ada < {"id":3,"unsubscribe":{}}
           ada > {"id":4,"subscribe":{"channel":"p","type":4,"data":1}}
           ada < {"id":4,"subscribe":{"type":4}}
           ada tracks a:1
           bob tracks a:1"#,
    );
    assert_eq!(subject.publish("a", 2, "7"), Ok(()));
    subject.play(
        r#"bob < {"push":{"channel":"p","pub":{"data":7,"key":"a","version":2}}}
           ada tracks a:0"#,
    );
}

#[test]
fn another_epoch_ends_the_subscriptions() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    subject.play("ada tracks a:1");
    subject.wait(10);
    assert_eq!(subject.run(), ["a:0"]);
    subject.answer("new", &[("a", 1, "1")]);
    subject.play(
        r#"
        ada < {"push":{"channel":"p","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
        bob < {"push":{"channel":"p","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
        ada > {"id":4,"subscribe":{"channel":"p","type":4}}
        ada < {"id":4,"subscribe":{"epoch":"E1","type":4}}
        ada tracks a:0
        ada < {"push":{"channel":"p","pub":{"data":1,"key":"a","version":1}}}
    "#,
    );
}

#[test]
fn a_value_that_is_published_goes_to_those_who_track_its_key() {
    let mut subject = Subject::new(PollMode::Versioned, |options| {
        options.channel.without_namespace.shared_poll.publish_enabled = true;
    });
    subject.play("ada tracks a:1");
    assert_eq!(subject.publish("a", 2, "7"), Ok(()));
    subject.play(r#"ada < {"push":{"channel":"p","pub":{"data":7,"key":"a","version":2}}}"#);
    assert_eq!(subject.publish("a", 2, "8"), Ok(()));
    assert_eq!(subject.publish("b", 1, "8"), Ok(()));
    subject.play("ada receives nothing");
    assert_eq!(subject.publish("a", 0, "8"), Err(107));
    assert_eq!(subject.publish("", 1, "8"), Err(107));
    assert_eq!(Subject::new(PollMode::Versioned, |_| {}).publish("a", 1, "8"), Err(108));
}

#[test]
fn batches_of_one_request_are_tracked_together_or_not_at_all() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    subject.play("bob tracks a:0");
    assert_eq!(subject.run(), ["a:0"]);
    subject.answer("", &[("a", 5, "1")]);
    let first = batch("a:5,b:5", UNIX + 1000);
    let last = batch("a:4", UNIX + 2000);
    let foreign = batch("c:0", UNIX + 1000).replace(r#""key":"c""#, r#""key":"d""#);
    let request = |batches: &[&str], rest: &str| {
        let batches = batches.join(",");
        format!(r#"{{"id":9,"sub_refresh":{{"channel":"p","type":1,"track":[{batches}]{rest}}}}}"#)
    };
    subject.play(&format!(
        r#"
        bob < {{"push":{{"channel":"p","pub":{{"data":1,"key":"a","version":5}}}}}}
        ada > {}
        ada < {{"id":9,"error":{{"code":103,"message":"permission denied"}}}}
        ada > {}
        ada < {{"id":9,"error":{{"code":107,"message":"bad request"}}}}
    "#,
        request(&[&first, &foreign], ""),
        request(&[&first, r#"{"signature":"s","items":[]}"#], ""),
    ));
    subject.wait(10);
    assert_eq!(subject.run(), Vec::<String>::new(), "b is not tracked");
    let both = request(&[&first, &last], r#","untrack":["b"]"#);
    subject.play(&format!(
        r#"
        ada > {both}
        ada < {{"id":9,"sub_refresh":{{"expires":true,"ttl":990}}}}
        ada < {{"push":{{"channel":"p","pub":{{"data":1,"key":"a","version":5}}}}}}
    "#
    ));
    subject.wait(10);
    assert_eq!(subject.run(), ["a:5"], "the last batch counts, and b was untracked");
}

#[test]
fn a_connection_tracks_5000_keys_and_one_more_is_106() {
    let mut subject = Subject::new(PollMode::Versioned, |options| {
        options.channel.without_namespace.shared_poll = Default::default();
        options.channel.without_namespace.shared_poll.mode = PollMode::Versioned;
    });
    let items = |count: usize| {
        let items: Vec<_> = (0..count).map(|number| format!("{number}:0")).collect();
        items.join(",")
    };
    subject.world.say("ada", &track(&items(5001), UNIX + 1000));
    let refused = subject.world.heard("ada").expect("a reply");
    assert!(refused.contains(r#""code":106"#), "{refused}");
    assert_eq!(subject.run(), Vec::<String>::new());
    subject.play(&format!("ada tracks {}", items(5000)));
    let asked: usize = subject.run().iter().map(|call| call.split(' ').count()).sum();
    assert_eq!(asked, 5000);
}

/// The text of a signature separates keys by NUL, so that a key cannot contain it.
#[test]
fn a_key_has_1_to_255_bytes_and_no_nul() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    let long = "k".repeat(255);
    let too_long = track(&format!("{long}k:0"), UNIX + 1000);
    let odd = "\u{2028}\u{feff}é";
    subject.play(&format!("ada tracks {long}:0,{odd}:1"));
    assert_eq!(subject.run(), [format!("{long}:0")]);
    let signed = track("a:0", UNIX + 1000);
    let empty = signed.replace(r#""key":"a""#, r#""key":"""#);
    let nul = signed.replace(r#""key":"a""#, r#""key":"a\u0000""#);
    subject.play(&format!(
        r#"
        ada > {too_long}
        ada < {{"id":9,"error":{{"code":107,"message":"bad request"}}}}
        ada > {empty}
        ada < {{"id":9,"error":{{"code":107,"message":"bad request"}}}}
        ada > {nul}
        ada < {{"id":9,"error":{{"code":103,"message":"permission denied"}}}}
    "#
    ));
}

#[test]
fn a_version_that_no_value_reaches_gets_no_value() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    let newest = u64::MAX;
    subject.play(&format!("ada tracks a:{newest}\n bob tracks a:0"));
    assert_eq!(subject.run(), ["a:0"]);
    subject.answer("", &[("a", 5, "1"), ("a", 4, "0"), ("foreign", 9, "9")]);
    subject.play(r#"bob < {"push":{"channel":"p","pub":{"data":1,"key":"a","version":5}}}"#);
}

#[test]
fn a_backend_that_never_answers_is_asked_again_and_its_late_answer_is_dropped() {
    let mut subject = Subject::new(PollMode::Versioned, |_| {});
    subject.play("ada tracks a:0");
    assert_eq!(subject.run(), ["a:0"]);
    subject.wait(29);
    assert_eq!(subject.run(), Vec::<String>::new(), "it has 30 s");
    subject.wait(11);
    assert_eq!(subject.run(), ["a:0"]);
    subject.answer("", &[("a", 5, "late")]);
    subject.play("ada receives nothing");
    subject.answer("", &[("a", 5, "1")]);
    subject.play(r#"ada < {"push":{"channel":"p","pub":{"data":1,"key":"a","version":5}}}"#);
}

#[test]
fn a_second_subscribe_is_105_and_one_beyond_the_limit_106() {
    let mut subject = Subject::new(PollMode::Versioned, |options| {
        options.client.channel_limit = 1;
    });
    subject.play(
        r#"
        ada > {"id":3,"subscribe":{"channel":"p","type":4}}
        ada < {"id":3,"error":{"code":105,"message":"already subscribed"}}
        ada > {"id":4,"subscribe":{"channel":"q","type":4}}
        ada < {"id":4,"error":{"code":106,"message":"limit exceeded"}}
        ada > {"id":5,"sub_refresh":{"channel":"q","type":2,"untrack":["a"]}}
        ada < {"id":5,"error":{"code":103,"message":"permission denied"}}
        ada > {"id":6,"sub_refresh":{"channel":"p","type":3,"untrack":["a"]}}
        ada < {"id":6,"error":{"code":107,"message":"bad request"}}
        ada > {"id":7,"unsubscribe":{"channel":"p"}}
        ada < {"id":7,"unsubscribe":{}}
        ada > {"id":8,"sub_refresh":{"channel":"p","type":2,"untrack":["a"]}}
        ada < {"id":8,"error":{"code":103,"message":"permission denied"}}
    "#,
    );
}
