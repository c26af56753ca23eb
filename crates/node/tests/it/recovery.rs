//! Positions and recovery on subscribe and connect (protocol §8–10): what replies say, what is missed and noticed.
//! In: dialogues, one broker that loses publications → out: flags, offsets, recovered publications, 2500 and 3010.
//! Uses: `world`, `script`, the options of `history.rs`. Never: random operations (see `streams.rs`).
//! Changed here: tests of positions. The rules by themselves are tested in `src/recovery/tests.rs`.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fanwire_broker::{
    Answer, Broker, Change, Deliver, DeliverOptions, MemoryBroker, Position, PublishOptions, Query,
    Retention, StreamSlice,
};
use fanwire_node::options::{Namespace, RecoveryMode};
use fanwire_node::{NodeParts, Options, Page};
use fanwire_protocol::{ClientInfo, Publication};

use crate::history::with_history;
use crate::script::{hello, play_in_both};
use crate::world::World;

/// Five publications are kept, and every subscription can recover.
fn recoverable() -> Options {
    with_history(|open| {
        open.force_recovery = true;
        open.allow_history_for_client = false;
    })
}

fn check(options: &Options, rest: &str) {
    let connected = r#"
        ada opens
        ada > {"id":1,"connect":{}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
    "#;
    play_in_both(options, &format!("{connected}{rest}"));
}

#[test]
fn a_first_subscription_learns_the_position_and_a_return_brings_what_was_missed() {
    check(
        &recoverable(),
        r#"
        ada > {"id":2,"subscribe":{"channel":"news"}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
        api > news 1
        ada < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
        api > news 2
        api > news 3
        ada > {"id":4,"subscribe":{"channel":"news","recover":true,"offset":1,"epoch":"E1"}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":2,"offset":2},{"data":3,"offset":3}],"recovered":true,"offset":1,"positioned":true,"was_recovering":true}}
        api > news 4
        ada < {"push":{"channel":"news","pub":{"data":4,"offset":4}}}
        ada > {"id":5,"unsubscribe":{"channel":"news"}}
        ada < {"id":5,"unsubscribe":{}}
        ada > {"id":6,"subscribe":{"channel":"news","recover":true,"offset":4,"epoch":"E1"}}
        ada < {"id":6,"subscribe":{"recoverable":true,"epoch":"E1","recovered":true,"offset":4,"positioned":true,"was_recovering":true}}
    "#,
    );
}

#[test]
fn what_cannot_be_recovered_is_told_with_the_top_or_is_112_if_the_client_prefers() {
    let publish = (1..=7).map(|n| format!("api > news {n}\n")).collect::<String>();
    let learn = r#"
        ada > {"id":2,"subscribe":{"channel":"news"}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","offset":7,"positioned":true}}
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
    "#;
    let claims = [
        r#""offset":1,"epoch":"E1""#,
        r#""offset":8,"epoch":"E1""#,
        r#""offset":6,"epoch":"foreign""#,
        r#""epoch":"_""#,
        r#""offset":1"#,
    ];
    for claim in claims {
        check(
            &recoverable(),
            &format!(
                r#"{publish}{learn}
                ada > {{"id":4,"subscribe":{{"channel":"news","recover":true,{claim}}}}}
                ada < {{"id":4,"subscribe":{{"recoverable":true,"epoch":"E1","offset":7,"positioned":true,"was_recovering":true}}}}
                ada > {{"id":5,"unsubscribe":{{"channel":"news"}}}}
                ada < {{"id":5,"unsubscribe":{{}}}}
                ada > {{"id":6,"subscribe":{{"channel":"news","recover":true,"flag":3,{claim}}}}}
                ada < {{"id":6,"error":{{"code":112,"message":"unrecoverable position"}}}}
                api > news 8
                ada > {{"id":7,"subscribe":{{"channel":"news","recover":true,"flag":3,"offset":7}}}}
                ada < {{"id":7,"subscribe":{{"recoverable":true,"epoch":"E1","publications":[{{"data":8,"offset":8}}],"recovered":true,"offset":7,"positioned":true,"was_recovering":true}}}}
            "#
            ),
        );
    }
}

#[test]
fn exactly_the_limit_is_recovered_and_one_more_is_not() {
    let mut options = recoverable();
    options.channel.without_namespace.history_size = 1000;
    let publish = |count| (0..count).map(|n| format!("api > news {n}\n")).collect::<String>();
    let mut world = World::new(options);
    world.connected("ada", hello(""));
    world.play(&publish(300));
    world.say("ada", r#"{"id":2,"subscribe":{"channel":"news","recover":true}}"#);
    world.do_errands(); // it is a large one
    let reply = world.heard("ada").expect("a reply");
    assert!(reply.contains(r#""recovered":true"#), "{reply}");
    assert_eq!(reply.matches(r#""data""#).count(), 300);
    world.play(
        r#"
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
    "#,
    );
    world.play(&publish(1));
    world.play(
        r#"
        ada > {"id":2,"subscribe":{"channel":"news","recover":true}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","offset":301,"positioned":true,"was_recovering":true}}
    "#,
    );
}

#[test]
fn history_that_was_removed_or_expired_cannot_be_recovered_but_its_position_is_known() {
    for event in ["api removes history: news", "wait 61s"] {
        check(
            &recoverable(),
            &format!(
                r#"
                api > news 1
                api > news 2
                {event}
                ada > {{"id":2,"subscribe":{{"channel":"news","recover":true,"offset":1}}}}
                ada < {{"id":2,"subscribe":{{"recoverable":true,"epoch":"E1","offset":2,"positioned":true,"was_recovering":true}}}}
                ada > {{"id":3,"unsubscribe":{{"channel":"news"}}}}
                ada < {{"id":3,"unsubscribe":{{}}}}
                ada > {{"id":4,"subscribe":{{"channel":"news","recover":true,"offset":2,"epoch":"E1"}}}}
                ada < {{"id":4,"subscribe":{{"recoverable":true,"epoch":"E1","recovered":true,"offset":2,"positioned":true,"was_recovering":true}}}}
            "#
            ),
        );
    }
}

fn asks(change: impl FnOnce(&mut Namespace), insecure: bool, wish: &str, answer: &str) {
    let mut options = with_history(|open| {
        open.allow_history_for_client = false;
        change(open);
    });
    options.client.insecure = insecure;
    check(
        &options,
        &format!(
            r#"api > news 1
               ada > {{"id":2,"subscribe":{{"channel":"news"{wish}}}}}
               ada < {{"id":2,"subscribe":{answer}}}"#
        ),
    );
}

#[test]
fn a_client_gets_what_is_forced_or_allowed_or_what_it_could_read_anyway() {
    const POSITIONED: &str = r#"{"epoch":"E1","offset":1,"positioned":true}"#;
    const RECOVERABLE: &str = r#"{"recoverable":true,"epoch":"E1","offset":1,"positioned":true}"#;
    let no = "";
    let both = r#","positioned":true,"recoverable":true"#;
    let positioned = r#","positioned":true"#;
    let recoverable = r#","recoverable":true"#;
    asks(|_| {}, false, both, "{}");
    asks(|_| {}, true, no, "{}");
    asks(|_| {}, true, positioned, POSITIONED);
    asks(|_| {}, true, recoverable, RECOVERABLE);
    asks(|open| open.force_positioning = true, false, no, POSITIONED);
    asks(|open| open.force_recovery = true, false, no, RECOVERABLE);
    asks(|open| open.allow_positioning = true, false, no, "{}");
    asks(|open| open.allow_positioning = true, false, both, POSITIONED);
    asks(|open| open.allow_recovery = true, false, both, RECOVERABLE);
    asks(|open| open.allow_history_for_client = true, false, both, RECOVERABLE);
    asks(|open| open.allow_history_for_subscriber = true, false, positioned, POSITIONED);
}

#[test]
fn a_subscription_that_is_only_positioned_does_not_recover() {
    asks(
        |open| open.force_positioning = true,
        false,
        r#","recover":true,"recoverable":true,"offset":0"#,
        r#"{"epoch":"E1","offset":1,"positioned":true,"was_recovering":true}"#,
    );
}

#[test]
fn publications_on_their_way_are_not_delivered_twice() {
    let mut world = World::with_shards(recoverable(), 1);
    for name in ["ada", "bob", "eve"] {
        world.connected(name, hello(if name == "eve" { "protobuf" } else { "" }));
    }
    world.play(
        r#"
        bob > {"id":2,"subscribe":{"channel":"news"}}
        bob < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
    "#,
    );
    // Two publications lie in the inbox while ada and eve subscribe; they know them from their replies.
    for data in ["1", "2"] {
        let publication = Publication { data: data.into(), ..Publication::default() };
        world
            .node
            .channels()
            .publish("news", publication, Default::default(), world.now)
            .wait()
            .expect("published");
    }
    world.say_unsettled("ada", r#"{"id":2,"subscribe":{"channel":"news","recover":true}}"#);
    world.say_unsettled("eve", r#"{"id":2,"subscribe":{"channel":"news"}}"#);
    world.play(
        r#"
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":1,"offset":1},{"data":2,"offset":2}],"recovered":true,"positioned":true,"was_recovering":true}}
        eve < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","offset":2,"positioned":true}}
        api > news 3
        bob < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        bob < {"push":{"channel":"news","pub":{"data":2,"offset":2}}}
        bob < {"push":{"channel":"news","pub":{"data":3,"offset":3}}}
        ada < {"push":{"channel":"news","pub":{"data":3,"offset":3}}}
        eve < {"push":{"channel":"news","pub":{"data":3,"offset":3}}}
    "#,
    );
}

#[test]
fn a_cache_brings_the_newest_publication_only() {
    let mut options = recoverable();
    options.channel.without_namespace.force_recovery_mode = RecoveryMode::Cache;
    check(
        &options,
        r#"
        ada > {"id":2,"subscribe":{"channel":"news","recover":true}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true,"was_recovering":true}}
        api > news 1
        ada < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        api > news 2
        ada < {"push":{"channel":"news","pub":{"data":2,"offset":2}}}
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
        ada > {"id":4,"subscribe":{"channel":"news","recover":true,"offset":2,"epoch":"E1"}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E1","recovered":true,"offset":2,"positioned":true,"was_recovering":true}}
        ada > {"id":5,"unsubscribe":{"channel":"news"}}
        ada < {"id":5,"unsubscribe":{}}
        ada > {"id":6,"subscribe":{"channel":"news","recover":true,"epoch":"_"}}
        ada < {"id":6,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":2,"offset":2}],"recovered":true,"positioned":true,"was_recovering":true}}
        ada > {"id":7,"unsubscribe":{"channel":"news"}}
        ada < {"id":7,"unsubscribe":{}}
        ada > {"id":8,"subscribe":{"channel":"news"}}
        ada < {"id":8,"subscribe":{"recoverable":true,"epoch":"E1","offset":2,"positioned":true}}
    "#,
    );
    options.channel.without_namespace.auto_cache_recover = true;
    check(
        &options,
        r#"
        api > news 1
        ada > {"id":2,"subscribe":{"channel":"news"}}
        ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":1,"offset":1}],"recovered":true,"positioned":true,"was_recovering":true}}
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
        ada > {"id":4,"subscribe":{"channel":"news","offset":1,"epoch":"E1"}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E1","recovered":true,"offset":1,"positioned":true,"was_recovering":true}}
    "#,
    );
}

#[test]
fn subscriptions_of_the_server_recover_at_connect() {
    play_in_both(
        &recoverable(),
        r#"
        ada opens
        ada > {"id":1,"connect":{"subs":{"news":{}}}}
        ada < {"id":1,"connect":{"client":"ada","version":"test","subs":{"news":{"recoverable":true,"epoch":"E1","positioned":true}},"ping":25,"pong":true}}
        api > news 1
        ada < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        ada closes
        api > news 2
        eve opens
        eve > {"id":1,"connect":{"subs":{"news":{"recover":true,"offset":1,"epoch":"E1"},"other":{"recover":true,"epoch":"_"}}}}
        eve < {"id":1,"connect":{"client":"eve","version":"test","subs":{"news":{"recoverable":true,"epoch":"E1","publications":[{"data":2,"offset":2}],"recovered":true,"offset":1,"positioned":true,"was_recovering":true},"other":{"recoverable":true,"epoch":"E2","positioned":true,"was_recovering":true}},"ping":25,"pong":true}}
        api > news 3
        eve < {"push":{"channel":"news","pub":{"data":3,"offset":3}}}
    "#,
    );
}

/// A router that loses the publications whose data is `"lost"`, knows it when that is `"noticed"`, and brings those that are
/// `"late"` as if they had been on their way for 3 s.
pub(crate) struct Lossy(pub(crate) Arc<dyn Deliver>);

impl Deliver for Lossy {
    fn deliver(&self, channel: &str, publication: Publication, options: DeliverOptions) {
        match &publication.data[..] {
            b"\"lost\"" => {}
            b"\"noticed\"" => self.0.report_possible_gap(channel),
            b"\"late\"" => {
                let late = Publication { time: publication.time - 3_000, ..publication };
                self.0.deliver(channel, late, options);
            }
            _ => self.0.deliver(channel, publication, options),
        }
    }

    fn deliver_join_leave(&self, channel: &str, change: Change, info: ClientInfo) {
        self.0.deliver_join_leave(channel, change, info);
    }
}

/// A world whose broker loses publications.
fn lossy(options: Options) -> World {
    let make = |router| Arc::new(MemoryBroker::new(Arc::new(Lossy(router)), 1 << 30)) as _;
    World::with_parts(options, NodeParts::with_broker(make), 2)
}

const TWO_SUBSCRIBERS: &str = r#"
    ada opens
    ada > {"id":1,"connect":{}}
    ada < {"id":1,"connect":{"client":"ada","version":"test","ping":25,"pong":true}}
    ada > {"id":2,"subscribe":{"channel":"news"}}
    ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}
    eve opens
    eve > {"id":1,"connect":{"subs":{"news":{}}}}
    eve < {"id":1,"connect":{"client":"eve","version":"test","subs":{"news":{"recoverable":true,"epoch":"E1","positioned":true}},"ping":25,"pong":true}}
"#;

#[test]
fn a_hole_ends_the_subscription_or_if_the_server_made_it_the_connection() {
    let mut world = lossy(recoverable());
    world.play(TWO_SUBSCRIBERS);
    world.play(
        r#"
        api > news "lost"
        ada receives nothing
        api > news 2
        ada < {"push":{"channel":"news","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
        eve x 3010 insufficient state
        ada > {"id":3,"subscribe":{"channel":"news","recover":true,"epoch":"E1"}}
        ada < {"id":3,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":"lost","offset":1},{"data":2,"offset":2}],"recovered":true,"positioned":true,"was_recovering":true}}
    "#,
    );
}

#[test]
fn a_silent_loss_is_noticed_by_the_check_of_positions() {
    let mut world = lossy(recoverable());
    world.play(TWO_SUBSCRIBERS);
    world.play(
        r#"
        wait 30s
        api > news "lost"
        ada awaits 9s
        ada receives nothing
        ada awaits 3s
        ada < {"push":{"channel":"news","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
        eve x 3010 insufficient state
        wait 200s
    "#,
    );
}

#[test]
fn a_broker_that_knows_of_a_loss_makes_positions_be_checked_soon() {
    let mut world = lossy(recoverable());
    world.play(TWO_SUBSCRIBERS);
    world.play(
        r#"
        api > news "noticed"
        ada awaits 2s
        ada < {"push":{"channel":"news","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
        eve x 3010 insufficient state
    "#,
    );
}

#[test]
fn activity_puts_the_check_off_and_a_check_that_finds_nothing_is_silent() {
    let mut world = lossy(recoverable());
    world.play(TWO_SUBSCRIBERS);
    world.play(
        r#"
        wait 200s
        api > news 1
        ada < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        eve < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        api > news "lost"
        ada awaits 38s
        ada receives nothing
        ada awaits 4s
        ada < {"push":{"channel":"news","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
        eve x 3010 insufficient state
    "#,
    );
}

/// A memory broker that counts how often somebody looks into a stream.
struct Counting(MemoryBroker, AtomicUsize);

impl Broker for Counting {
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Answer<Position> {
        self.0.publish(channel, publication, options, retention, now)
    }

    fn history(
        &self,
        channel: &str,
        query: Query,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        self.1.fetch_add(1, Relaxed);
        self.0.history(channel, query, retention, now)
    }

    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        self.1.fetch_add(1, Relaxed);
        self.0.follow(channel, query, retention, now)
    }

    fn publish_join_leave(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()> {
        self.0.publish_join_leave(channel, change, info)
    }

    fn remove_history(&self, channel: &str, now: Instant) -> Answer<()> {
        self.0.remove_history(channel, now)
    }

    fn subscribe(&self, channel: &str) {
        self.0.subscribe(channel);
    }

    fn unsubscribe(&self, channel: &str) {
        self.0.unsubscribe(channel);
    }

    fn sweep(&self, now: Instant) {
        self.0.sweep(now);
    }

    fn history_bytes(&self) -> usize {
        self.0.history_bytes()
    }
}

#[test]
fn one_look_at_the_stream_checks_all_subscribers_of_all_shards() {
    let broker = Arc::new(OnceLock::new());
    let made = Arc::clone(&broker);
    let parts = NodeParts::with_broker(move |router| {
        let counting = Counting(MemoryBroker::new(router, 1 << 30), AtomicUsize::new(0));
        Arc::<Counting>::clone(made.get_or_init(|| Arc::new(counting)))
    });
    let mut world = World::with_parts(recoverable(), parts, 3);
    for number in 0..30 {
        let name = format!("client{number}");
        world.connected(&name, hello(""));
        world.say(&name, r#"{"id":2,"subscribe":{"channel":"news"}}"#);
        assert!(world.heard(&name).is_some_and(|reply| reply.contains("positioned")));
    }
    let looks = || broker.get().expect("made").1.load(Relaxed);
    assert_eq!(looks(), 30, "one per subscribe");
    world.wait(Duration::from_secs(410));
    assert_eq!(looks() - 30, 10, "one every 40 s");
}

#[test]
fn a_publication_that_was_on_its_way_for_too_long_is_insufficient_state() {
    let mut options = recoverable();
    options.client.channel_position_max_time_lag = Duration::from_millis(2_999);
    let mut world = lossy(options);
    world.play(TWO_SUBSCRIBERS);
    world.play(
        r#"
        api > news 1
        ada < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        eve < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        api skips history: news "late"
        ada < {"push":{"channel":"news","pub":{"data":"late"}}}
        eve < {"push":{"channel":"news","pub":{"data":"late"}}}
        api > news "late"
        ada < {"push":{"channel":"news","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
        eve x 3010 insufficient state
        ada > {"id":3,"subscribe":{"channel":"news","recover":true,"epoch":"E1","offset":1}}
        ada < {"id":3,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":"late","offset":2}],"recovered":true,"offset":1,"positioned":true,"was_recovering":true}}
    "#,
    );
    let read = world
        .node
        .channels()
        .history("news", &Page::default(), world.now)
        .wait()
        .expect("it is kept");
    assert_eq!(read.publications.iter().map(|one| one.time).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn a_publication_that_comes_too_late_ends_nobody_who_knows_it() {
    let mut options = recoverable();
    options.client.channel_position_max_time_lag = Duration::from_millis(2_999);
    let mut world = World::around(lossy(options.clone()).node, Instant::now(), 1);
    world.play(TWO_SUBSCRIBERS);
    world.play(
        r#"
        ada > {"id":3,"unsubscribe":{"channel":"news"}}
        ada < {"id":3,"unsubscribe":{}}
    "#,
    );
    let publication = Publication { data: "\"late\"".into(), ..Publication::default() };
    let published =
        world.node.channels().publish("news", publication, PublishOptions::default(), world.now);
    published.wait().expect("the memory broker never fails");
    world.play(
        r#"
        ada > {"id":4,"subscribe":{"channel":"news","recover":true,"epoch":"E1"}}
        ada < {"id":4,"subscribe":{"recoverable":true,"epoch":"E1","publications":[{"data":"late","offset":1}],"recovered":true,"positioned":true,"was_recovering":true}}
        eve x 3010 insufficient state
        api > news 2
        ada < {"push":{"channel":"news","pub":{"data":2,"offset":2}}}
    "#,
    );
}

#[test]
fn a_publication_that_was_on_its_way_for_long_is_delivered_where_that_is_allowed() {
    for lag_max in [Duration::ZERO, Duration::from_secs(3)] {
        let mut options = recoverable();
        options.client.channel_position_max_time_lag = lag_max;
        let mut world = lossy(options);
        world.play(TWO_SUBSCRIBERS);
        world.play(
            r#"
            api > news "late"
            ada < {"push":{"channel":"news","pub":{"data":"late","offset":1,"epoch":"E1"}}}
            eve < {"push":{"channel":"news","pub":{"data":"late","offset":1,"epoch":"E1"}}}
        "#,
        );
    }
}

#[test]
fn a_stream_that_began_anew_is_insufficient_state() {
    let mut options = recoverable();
    options.client.channel_position_check_delay = Duration::ZERO;
    options.channel.without_namespace.history_meta_ttl = Duration::from_secs(60);
    let mut world = World::with_shards(options, 1);
    world.play(TWO_SUBSCRIBERS);
    world.play(
        r#"
        api > news 0
        ada < {"push":{"channel":"news","pub":{"data":0,"offset":1,"epoch":"E1"}}}
        eve < {"push":{"channel":"news","pub":{"data":0,"offset":1,"epoch":"E1"}}}
        wait 61s
        api > news 1
        ada < {"push":{"channel":"news","unsubscribe":{"code":2500,"reason":"insufficient state"}}}
        eve x 3010 insufficient state
    "#,
    );
}

#[test]
fn checks_keep_the_stream_of_a_silent_channel_alive() {
    let mut options = recoverable();
    options.channel.without_namespace.history_meta_ttl = Duration::from_secs(60);
    let mut world = World::with_shards(options, 1);
    world.play(TWO_SUBSCRIBERS);
    world.play(
        r#"
        api > news 0
        ada < {"push":{"channel":"news","pub":{"data":0,"offset":1,"epoch":"E1"}}}
        eve < {"push":{"channel":"news","pub":{"data":0,"offset":1,"epoch":"E1"}}}
        wait 1000s
        api > news 1
        ada < {"push":{"channel":"news","pub":{"data":1,"offset":2}}}
        eve < {"push":{"channel":"news","pub":{"data":1,"offset":2}}}
    "#,
    );
}
