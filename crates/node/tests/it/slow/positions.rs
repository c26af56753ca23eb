//! Positions that are compared with a stream which answers later: what is a loss, when, and for whom.
//! In: a router that loses publications or brings them late, answers that a test holds back → out: 2500, or silence.
//! Uses: the slow world of the room above, the lossy router of `recovery.rs`. Never: threads.
//! Changed here: promises about checks behind a broker like Redis. Checks that are answered at once are in `recovery.rs`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fanwire_broker::{Deliver, DeliverOptions, Epoch, MemoryBroker};
use fanwire_node::NodeParts;
use fanwire_node::protocol::Publication;

use super::{Held, Slow, SlowWorld, tracked};
use crate::recovery::Lossy;
use crate::script::hello;
use crate::world::World;

/// A slow world, whose router loses what is `"lost"` and which can be reached past its broker.
struct Distant {
    slow: SlowWorld,
    router: Arc<dyn Deliver>,
}

impl Distant {
    /// Creates a world with these connected peers, one on this shard, the next on the other one.
    fn with(names: &[&str]) -> Self {
        let held = Held::default();
        let of_broker = Arc::clone(&held);
        let kept = Arc::new(OnceLock::<Arc<dyn Deliver>>::new());
        let given = Arc::clone(&kept);
        let parts = NodeParts::with_broker(move |router| {
            let lossy = Lossy(Arc::clone(given.get_or_init(|| router)));
            let inner = MemoryBroker::new(Arc::new(lossy), 1 << 30);
            Arc::new(Slow { inner, held: of_broker })
        });
        let mut slow = SlowWorld { world: World::with_parts(tracked(), parts, 2), held };
        names.iter().for_each(|name| slow.world.connected(name, hello("")));
        Self { slow, router: Arc::clone(kept.get().expect("made")) }
    }

    /// A peer subscribes to `news` and is told this offset.
    fn subscribe(&mut self, name: &str, offset: u64) {
        self.slow.world.say(name, r#"{"id":2,"subscribe":{"channel":"news"}}"#);
        self.slow.answer_all();
        let offset = if offset > 0 { format!(r#","offset":{offset}"#) } else { String::new() };
        self.slow.world.play(&format!(
            r#"{name} < {{"id":2,"subscribe":{{"recoverable":true,"epoch":"E1"{offset},"positioned":true}}}}"#
        ));
    }

    /// Publishes, and what asks for it is answered.
    fn publish(&mut self, data: &str) {
        self.slow.publish("news", data);
        self.slow.answer_all();
    }

    /// A publication comes through the router that the stream does not have, or not any more, or had long ago.
    fn bring(&mut self, offset: u64) {
        let epoch = Epoch::parse(&self.slow.world.epochs[0]).expect("a peer was told");
        let publication = Publication { data: "0".into(), offset, ..Publication::default() };
        let options = DeliverOptions { epoch, ..DeliverOptions::new(self.slow.world.now) };
        self.router.deliver("news", publication, options);
        self.slow.world.settle();
    }

    /// The way from the broker was interrupted, and a publication was lost on it.
    fn interrupt(&mut self) {
        self.publish("\"lost\"");
        self.router.report_possible_gap("news");
        self.slow.world.settle();
    }

    fn wait_ms(&mut self, ms: u64) {
        self.slow.world.wait(Duration::from_millis(ms));
    }

    /// How many questions wait for their answers.
    fn questions(&self) -> usize {
        self.slow.held.lock().expect("one thread").len()
    }

    /// Every question is answered soon, for so long.
    fn wait_with_answers(&mut self, ms: u64) {
        for _ in 0..ms / 100 {
            self.wait_ms(100);
            self.slow.answer_all();
        }
    }

    fn play(&mut self, script: &str) {
        self.slow.world.play(script);
    }
}

/// Returns the message to a peer whose position is not right.
fn lost(name: &str) -> String {
    format!(
        r#"{name} < {{"push":{{"channel":"news","unsubscribe":{{"code":2500,"reason":"insufficient state"}}}}}}"#
    )
}

#[test]
fn a_stream_that_lost_its_end_ends_those_who_know_it() {
    let mut distant = Distant::with(&["ada", "bob", "eve"]);
    for name in ["ada", "bob"] {
        distant.subscribe(name, 0);
    }
    distant.publish("1");
    distant.bring(2);
    distant.play(
        r#"
        ada < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        ada < {"push":{"channel":"news","pub":{"data":0,"offset":2}}}
        bob < {"push":{"channel":"news","pub":{"data":1,"offset":1,"epoch":"E1"}}}
        bob < {"push":{"channel":"news","pub":{"data":0,"offset":2}}}
    "#,
    );
    distant.subscribe("eve", 1);
    distant.wait_ms(39_000);
    assert_eq!(distant.questions(), 0);
    distant.wait_ms(1_050);
    assert_eq!(distant.questions(), 1);
    distant.slow.answer_all();
    distant.play(&[lost("ada"), lost("bob"), "eve receives nothing".into()].join("\n"));
    distant.wait_ms(39_000);
    assert_eq!(distant.questions(), 0, "it was settled");
    distant.wait_with_answers(100_000);
    distant.publish("2");
    distant.play(r#"eve < {"push":{"channel":"news","pub":{"data":2,"offset":2}}}"#);
}

#[test]
fn an_answer_that_publications_overtook_is_no_loss() {
    let mut distant = Distant::with(&["ada", "bob"]);
    for name in ["ada", "bob"] {
        distant.subscribe(name, 0);
    }
    distant.wait_ms(40_050);
    assert_eq!(distant.questions(), 1);
    distant.bring(1);
    distant.slow.answer_all();
    distant.play(
        r#"
        ada < {"push":{"channel":"news","pub":{"data":0,"offset":1,"epoch":"E1"}}}
        bob < {"push":{"channel":"news","pub":{"data":0,"offset":1,"epoch":"E1"}}}
    "#,
    );
    distant.wait_ms(39_000);
    assert_eq!(distant.questions(), 0, "nothing is to be asked before it is silent again");
}

#[test]
fn a_loss_while_another_one_is_suspected_is_noticed_soon_and_shortens_nothing() {
    let mut distant = Distant::with(&["ada", "bob", "eve"]);
    distant.subscribe("ada", 0);
    distant.interrupt();
    distant.wait_with_answers(2_100);
    distant.subscribe("eve", 1);
    distant.interrupt();
    distant.wait_with_answers(2_700); // 4.8 s after the first answer at most
    distant.play("ada receives nothing\n eve receives nothing");
    distant.wait_with_answers(2_500);
    distant.play(&[&lost("ada"), "eve receives nothing"].join("\n"));
    distant.wait_with_answers(5_300);
    distant.play(&lost("eve"));
}

#[test]
fn a_loss_after_a_suspicion_that_came_to_nothing_is_noticed_soon() {
    let mut distant = Distant::with(&["ada"]);
    distant.subscribe("ada", 0);
    distant.interrupt();
    distant.wait_with_answers(2_100);
    distant.bring(1);
    distant.play(r#"ada < {"push":{"channel":"news","pub":{"data":0,"offset":1,"epoch":"E1"}}}"#);
    distant.interrupt();
    distant.wait_with_answers(7_400);
    distant.play(&lost("ada"));
}

#[test]
fn a_loss_is_looked_for_until_the_broker_answers() {
    let mut distant = Distant::with(&["ada"]);
    distant.subscribe("ada", 0);
    distant.interrupt();
    for _ in 0..3 {
        distant.wait_ms(2_100);
        assert_eq!(distant.questions(), 1);
        distant.slow.held.lock().expect("one thread").clear(); // the broker fails
        distant.slow.world.settle();
    }
    distant.wait_with_answers(7_400);
    distant.play(&lost("ada"));
}

#[test]
fn a_loss_while_a_session_is_entering_is_noticed_soon() {
    let mut distant = Distant::with(&["ada"]);
    distant.play(r#"ada > {"id":2,"subscribe":{"channel":"news"}}"#);
    distant.slow.publish("news", "\"lost\"");
    distant.router.report_possible_gap("news");
    distant.slow.world.settle();
    distant.slow.answer_all();
    distant
        .play(r#"ada < {"id":2,"subscribe":{"recoverable":true,"epoch":"E1","positioned":true}}"#);
    distant.wait_with_answers(7_400);
    distant.play(&lost("ada"));
}
