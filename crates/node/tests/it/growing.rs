//! Readers of messages that grow: those that come in the middle, reload, or miss publications all end with the same texts.
//! In: a random life of a channel, printed with its seed → out: the texts of each reader, against a naive model.
//! Uses: a node with two shards in virtual time. Never: the rules of pieces, which `fanwire_broker` tests.
//! Changed here: what readers and backends do.

use std::collections::BTreeMap;
use std::time::Duration;

use fanwire_broker::Fragment;
use fanwire_node::Options;
use proptest::prelude::*;
use serde_json::Value;

use crate::history::with_history;
use crate::script::hello;
use crate::world::World;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Append {
        message: usize,
        text: String,
        again: bool,
    },
    Publish,
    Wait(u64),
    /// A reader comes, or comes back with its position after a loss of its connection.
    Connect(usize),
    /// Its page is loaded again: it comes without a position.
    Reload(usize),
    /// Its connection is lost, with the publications that were on their way.
    Lose(usize),
}

const MESSAGES: usize = 3;
const READERS: usize = 4;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..MESSAGES, "[a-zé\"<\n]{0,6}", any::<bool>())
            .prop_map(|(message, text, again)| Step::Append { message, text, again }),
        1 => Just(Step::Publish),
        4 => (1..60_u64).prop_map(Step::Wait),
        2 => (0..READERS).prop_map(Step::Connect),
        1 => (0..READERS).prop_map(Step::Reload),
        1 => (0..READERS).prop_map(Step::Lose),
    ]
}

/// Facts of a page.
#[derive(Default)]
struct Reader {
    /// Name of its connection; a new one for each.
    connection: Option<String>,
    position: Option<(u64, String)>,
    texts: BTreeMap<String, String>,
}

struct Life {
    world: World,
    readers: [Reader; READERS],
    texts: [String; MESSAGES],
    /// Messages whose text waits, with the time until it is published.
    waits: Vec<(usize, Duration)>,
    published: usize,
    opened: usize,
}

fn kept(size: usize) -> Options {
    with_history(|open| {
        open.history_size = size;
        open.force_recovery = true;
        open.force_positioning = true;
    })
}

impl Life {
    fn new(options: Options) -> Self {
        let readers = Default::default();
        let texts = Default::default();
        let world = World::new(options);
        let waits = Vec::new();
        Self { world, readers, texts, waits, published: 0, opened: 0 }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Append { message, text, again } => {
                self.append(message, &text, false);
                if again {
                    self.append_at(message, &text, self.texts[message].len() - text.len());
                }
            }
            Step::Publish => {
                let data = self.published.to_string().into();
                let publication = fanwire_protocol::Publication { data, ..Default::default() };
                let channels = self.world.node.channels();
                let now = self.world.now;
                let published = channels.publish("a", publication, Default::default(), now);
                published.wait().expect("the broker is there");
                self.published += 1;
            }
            Step::Wait(milliseconds) => self.wait(Duration::from_millis(milliseconds)),
            Step::Connect(reader) if self.readers[reader].connection.is_none() => {
                self.connect(reader)
            }
            Step::Connect(_) => {}
            Step::Reload(reader) => {
                self.lose(reader);
                self.readers[reader] = Reader::default();
                self.connect(reader);
            }
            Step::Lose(reader) => self.lose(reader),
        }
    }

    fn append(&mut self, message: usize, text: &str, is_final: bool) {
        let at = self.texts[message].len();
        self.texts[message].push_str(text);
        let fragment = Fragment { is_final, ..fragment(text, at) };
        self.change(message, Some(fragment));
    }

    fn append_at(&mut self, message: usize, text: &str, at: usize) {
        self.change(message, Some(fragment(text, at)));
    }

    fn change(&mut self, message: usize, fragment: Option<Fragment>) {
        let channels = self.world.node.channels();
        let now = self.world.now;
        let answer = channels.append("a", &format!("m{message}"), fragment, now).wait();
        let appended = answer.expect("the broker is there").expect("a good piece");
        assert_eq!(appended.length, self.texts[message].len() as u64);
        self.waits.extend(appended.publish_after.map(|after| (message, after)));
    }

    /// Time passes; text that waits long enough is published, and all inboxes are read.
    fn wait(&mut self, duration: Duration) {
        let due = std::mem::take(&mut self.waits);
        for (message, after) in due {
            match after.checked_sub(duration) {
                Some(rest) if !rest.is_zero() => self.waits.push((message, rest)),
                _ => self.change(message, None),
            }
        }
        self.world.wait(duration);
        self.world.settle();
        (0..READERS).for_each(|reader| self.read(reader));
    }

    fn connect(&mut self, reader: usize) {
        let name = format!("{reader}-{}", self.opened);
        self.opened += 1;
        self.world.open(&name, hello(""));
        self.world.say(&name, r#"{"id":1,"connect":{}}"#);
        let position = self.readers[reader].position.clone();
        let (offset, epoch) = position.unwrap_or_default();
        let subscribe = format!(
            r#"{{"id":2,"subscribe":{{"channel":"a","recover":true,"offset":{offset},"epoch":"{epoch}"}}}}"#
        );
        self.world.say(&name, &subscribe);
        self.readers[reader].connection = Some(name);
        self.read(reader);
    }

    /// Batches that the reader has not read are lost with its connection.
    fn lose(&mut self, reader: usize) {
        if let Some(name) = self.readers[reader].connection.take() {
            self.world.close(&name);
        }
    }

    fn read(&mut self, reader: usize) {
        let Some(name) = self.readers[reader].connection.clone() else { return };
        while let Some(text) = self.world.heard(&name) {
            let message: Value = serde_json::from_str(&text).expect("JSON");
            assert!(!text.contains("\"unsubscribe\"") && message["error"].is_null(), "{text}");
            let state = &mut self.readers[reader];
            let reply = &message["subscribe"];
            if let Some(epoch) = reply["epoch"].as_str() {
                assert_eq!(reply["recovered"], true, "{text}");
                state.position = Some((reply["offset"].as_u64().unwrap_or(0), epoch.to_owned()));
            }
            let recovered = reply["publications"].as_array().into_iter().flatten();
            for publication in recovered.chain(message["push"].get("pub")) {
                state.take(publication);
            }
        }
    }
}

impl Reader {
    fn take(&mut self, publication: &Value) {
        let offset = publication["offset"].as_u64().expect("all are stored");
        if let Some((position, _)) = &mut self.position {
            *position = offset.max(*position);
        }
        if let Some(key) = publication["tags"]["key"].as_str() {
            let text = publication["data"].as_str().expect("a string").to_owned();
            let before = self.texts.insert(key.to_owned(), text).unwrap_or_default();
            assert!(self.texts[key].starts_with(&before), "text is only added");
        }
    }
}

fn fragment(text: &str, at: usize) -> Fragment {
    let text = text.to_owned();
    let at = Some(at as u64);
    Fragment { text, at, head: "\"".into(), ..Fragment::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_readers_end_with_the_same_text(steps in prop::collection::vec(step(), 1..80)) {
        let mut life = Life::new(kept(100));
        steps.into_iter().for_each(|step| life.step(step));
        (0..MESSAGES).for_each(|message| life.append(message, ".", true));
        life.wait(Duration::from_millis(40));
        for reader in 0..READERS {
            life.step(Step::Connect(reader));
            life.wait(Duration::ZERO);
            let texts = life.readers[reader].texts.values();
            prop_assert_eq!(Vec::from_iter(texts), Vec::from_iter(&life.texts), "{}", reader);
        }
    }
}

/// 800 publications of one message, and one that a reader missed before; history has two.
#[test]
fn a_reload_costs_one_publication_however_often_the_message_grew() {
    let mut life = Life::new(kept(2));
    life.step(Step::Publish);
    for _ in 0..800 {
        life.append(0, "token", false);
        life.wait(Duration::from_millis(40));
    }
    life.connect(0);
    assert_eq!(life.readers[0].texts["m0"], life.texts[0]);
    assert_eq!(life.readers[0].position.as_ref().map(|(offset, _)| *offset), Some(801));
    life.step(Step::Lose(0));
    life.append(0, "token", false);
    life.wait(Duration::from_millis(40));
    life.connect(0);
    assert_eq!(life.readers[0].texts["m0"], life.texts[0]);
}
