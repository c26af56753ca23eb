//! A map against a model: a list of operations, whose fold is the state.
//! In: random operations, sweeps and reads at virtual times → out: the same states, outcomes and pages.
//! Uses: the subject of `tests.rs`, proptest. Never: a clock it does not set.
//! Changed here: what the model knows of a map.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::map::MapStats;

#[derive(Clone, Debug)]
enum Operation {
    Set {
        key: u8,
        mode: KeyMode,
    },
    Remove {
        key: u8,
    },
    /// Sets a key if nothing has changed it since the model's last look.
    SetExpected {
        key: u8,
        is_right: bool,
    },
    Wait {
        seconds: u64,
    },
    /// Reads the next page of the reader, or the first one of another.
    ReadPage,
}

fn operation() -> impl Strategy<Value = Operation> {
    let mode = prop_oneof![
        3 => Just(KeyMode::Any),
        1 => any::<bool>().prop_map(|refreshes| KeyMode::IfNew { refreshes }),
        1 => Just(KeyMode::IfExists),
    ];
    prop_oneof![
        6 => (0..12_u8, mode).prop_map(|(key, mode)| Operation::Set { key, mode }),
        3 => (0..12_u8).prop_map(|key| Operation::Remove { key }),
        2 => (0..12_u8, any::<bool>())
            .prop_map(|(key, is_right)| Operation::SetExpected { key, is_right }),
        1 => (1..25_u64).prop_map(|seconds| Operation::Wait { seconds }),
        4 => Just(Operation::ReadPage),
    ]
}

#[derive(Clone, Debug, PartialEq)]
struct ModelEntry {
    data: String,
    offset: u64,
    until: u64,
}

#[derive(Default)]
struct Model {
    entries: BTreeMap<String, ModelEntry>,
    offset: u64,
}

/// Reads pages, and at their end the stream from the first one on.
#[derive(Default)]
struct Reader {
    merged: BTreeMap<String, String>,
    first: Option<Position>,
    cursor: String,
}

struct Run {
    subject: Subject,
    model: Model,
    reader: Reader,
    epoch: Epoch,
    seconds: u64,
}

impl Run {
    fn new() -> Self {
        let subject = Subject::new(1 << 20);
        let epoch = subject.page(0).top.epoch;
        let (model, reader) = (Model::default(), Reader::default());
        Self { subject, model, reader, epoch, seconds: 0 }
    }

    fn step(&mut self, number: usize, operation: &Operation) {
        let data = number.to_string();
        match *operation {
            Operation::Set { key, mode } => {
                let name = format!("key {key:02}");
                let exists = self.model.entries.contains_key(&name);
                let allowed = match mode {
                    KeyMode::Any => true,
                    KeyMode::IfNew { .. } => !exists,
                    KeyMode::IfExists => exists,
                };
                let publish = MapPublish { key_mode: mode, ..value(&name, &data) };
                self.set(publish, allowed);
                if exists && mode == (KeyMode::IfNew { refreshes: true }) {
                    let entry = self.model.entries.get_mut(&name).expect("it exists");
                    entry.until = self.seconds + 60;
                }
            }
            Operation::SetExpected { key, is_right } => {
                let name = format!("key {key:02}");
                let offset = self.model.entries.get(&name).map(|entry| entry.offset);
                let expected = offset.unwrap_or(0) + u64::from(!is_right);
                let expected = Some(Position { offset: expected, epoch: self.epoch });
                let publish = MapPublish { expected, ..value(&name, &data) };
                self.set(publish, is_right && offset.is_some());
            }
            Operation::Remove { key } => self.remove(format!("key {key:02}")),
            Operation::Wait { seconds } => self.wait(seconds),
            Operation::ReadPage => self.read_page(),
        }
    }

    fn set(&mut self, publish: MapPublish, allowed: bool) {
        let key = publish.publication.key.clone();
        let data = String::from_utf8_lossy(&publish.publication.data).into_owned();
        let outcome = self.subject.publish(publish, self.seconds).expect("nothing to refuse");
        assert_eq!(outcome.suppression.is_none(), allowed, "{outcome:?}");
        if allowed {
            self.model.offset += 1;
            let (offset, until) = (self.model.offset, self.seconds + 60);
            assert_eq!(outcome.position, Position { offset, epoch: self.epoch });
            self.model.entries.insert(key, ModelEntry { data, offset, until });
        }
    }

    fn remove(&mut self, key: String) {
        let existed = self.model.entries.remove(&key).is_some();
        self.model.offset += u64::from(existed);
        let publication = Publication { key, ..Publication::default() };
        let removal = MapRemoval { publication, ..MapRemoval::default() };
        let (channel, now) = (self.subject.channel("board"), self.subject.at(self.seconds));
        let outcome = self.subject.broker.remove(channel, removal, now).wait();
        let outcome = outcome.expect("available").expect("nothing to refuse");
        assert_eq!(outcome.suppression.is_none(), existed);
    }

    fn wait(&mut self, seconds: u64) {
        self.seconds += seconds;
        self.subject.broker.sweep(self.subject.at(self.seconds));
        let before = self.model.entries.len();
        self.model.entries.retain(|_, entry| entry.until > self.seconds);
        self.model.offset += (before - self.model.entries.len()) as u64;
    }

    fn read_page(&mut self) {
        let query = StateQuery {
            cursor: mem::take(&mut self.reader.cursor),
            limit: Some(3),
            epoch: self.epoch,
            ..StateQuery::default()
        };
        let (channel, now) = (self.subject.channel("board"), self.subject.at(self.seconds));
        let page = self.subject.broker.read_state(channel, &query, now).wait();
        let page = page.expect("available").expect("the epoch never ends");
        let first = *self.reader.first.get_or_insert(page.top);
        apply(&mut self.reader.merged, page.entries);
        self.reader.cursor = page.cursor;
        if self.reader.cursor.is_empty() {
            self.end_reading(first);
        }
    }

    /// A reader that was too slow gets an error, and reads from the start again.
    fn end_reading(&mut self, first: Position) {
        let mut reader = mem::take(&mut self.reader);
        let Ok(slice) = self.subject.changes(first, self.seconds) else { return };
        apply(&mut reader.merged, slice.publications);
        assert_eq!(reader.merged, self.state());
        assert_eq!(slice.top.offset, self.model.offset);
    }

    fn state(&self) -> BTreeMap<String, String> {
        let entries = self.model.entries.iter();
        entries.map(|(key, entry)| (key.clone(), entry.data.clone())).collect()
    }

    fn check(&self) {
        let page = self.subject.page(self.seconds);
        let entries = page.entries.iter().map(|entry| (&*entry.key, entry.offset));
        let expect = self.model.entries.iter().map(|(key, entry)| (&**key, entry.offset));
        assert!(entries.eq(expect), "{:?}", page.entries);
        assert_eq!(page.top, Position { offset: self.model.offset, epoch: self.epoch });
        let (channel, now) = (self.subject.channel("board"), self.subject.at(self.seconds));
        let stats = self.subject.broker.stats(channel, now).wait();
        assert_eq!(stats, Ok(MapStats { entries: self.model.entries.len() }));
        self.check_deliveries();
    }

    /// The deliveries have the order of the stream without a gap, and their sum is the state.
    fn check_deliveries(&self) {
        let delivered = self.subject.delivered.0.lock();
        let offsets = delivered.iter().map(|(change, _)| change.offset);
        assert!(offsets.eq(1..=self.model.offset));
        assert!(delivered.iter().all(|(_, epoch)| *epoch == self.epoch));
        let mut merged = BTreeMap::new();
        apply(&mut merged, delivered.iter().map(|(change, _)| change.clone()).collect());
        assert_eq!(merged, self.state());
    }
}

fn apply(state: &mut BTreeMap<String, String>, changes: Vec<Publication>) {
    for Publication { key, data, removed, .. } in changes {
        if removed {
            state.remove(&key);
        } else {
            state.insert(key, String::from_utf8_lossy(&data).into());
        }
    }
}

proptest! {
    #[test]
    fn a_map_is_the_fold_of_its_operations(operations in vec(operation(), 1..120)) {
        let mut run = Run::new();
        for (number, operation) in operations.iter().enumerate() {
            run.step(number, operation);
        }
        run.check();
    }
}
