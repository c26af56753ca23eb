//! Tests of snapshots: what goes on after a planned stop, and what a crash at any step may leave.
//! In: random calls of a broker, a disk in memory, any bytes → out: the same positions, or other epochs.
//! Uses: proptest, virtual times. Never: files.
//! Changed here: what the disk of these tests can lose.

mod layout;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fanwire_protocol::{ClientInfo, Publication};
use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;
use crate::map::{MapBroker, MapChannel, MapPublish, MapRemoval, MapRetention, StateQuery};
use crate::{
    Append, Broker, Change, Deliver, DeliverOptions, Epoch, Fragment, KeyOwner, Position,
    PublishOptions, Query, Retention, SystemChance,
};

/// The newest offset that was delivered, by channel and epoch.
#[derive(Default)]
struct Deliveries(Mutex<HashMap<(String, Epoch), u64>>);

impl Deliver for Deliveries {
    fn deliver(&self, channel: &str, publication: Publication, options: DeliverOptions) {
        let key = (channel.to_owned(), options.epoch);
        self.0.lock().insert(key, publication.offset);
    }

    fn deliver_join_leave(&self, _: &str, _: Change, _: ClientInfo) {}
}

/// The list of changes of one generation.
#[derive(Default)]
struct ListedChanges(Mutex<HashSet<Bucket>>);

impl ChangeMarks for ListedChanges {
    fn mark(&self, bucket: Bucket) {
        assert!(self.0.lock().insert(bucket), "a bucket is marked once");
    }
}

const RETENTION: Retention =
    Retention { size: 4, ttl: Duration::from_secs(600), meta_ttl: Duration::from_secs(3600) };
const MAPS: MapRetention = MapRetention {
    key_ttl: Duration::from_secs(600),
    stream: RETENTION,
    entries_max: 100,
    bytes_max: 1 << 20,
};

/// A call. Channels from 200 on are maps.
#[derive(Clone, Debug)]
enum Call {
    Publish { channel: u8, key: u8, version: u64 },
    Append { channel: u8, message: u8, is_final: bool },
    RemoveHistory { channel: u8 },
    Set { channel: u8, key: u8 },
    Remove { channel: u8, key: u8 },
    Clear { channel: u8 },
}

fn call() -> impl Strategy<Value = Call> {
    let channel = 0..30_u8;
    let map = 200..206_u8;
    prop_oneof![
        8 => (channel.clone(), 0..5_u8, 0..9_u64)
            .prop_map(|(channel, key, version)| Call::Publish { channel, key, version }),
        2 => (channel.clone(), 0..3_u8, any::<bool>())
            .prop_map(|(channel, message, is_final)| Call::Append { channel, message, is_final }),
        1 => channel.prop_map(|channel| Call::RemoveHistory { channel }),
        4 => (map.clone(), 0..5_u8).prop_map(|(channel, key)| Call::Set { channel, key }),
        2 => (map.clone(), 0..5_u8).prop_map(|(channel, key)| Call::Remove { channel, key }),
        1 => map.prop_map(|channel| Call::Clear { channel }),
    ]
}

fn map_channel(name: &str) -> MapChannel<'_> {
    MapChannel { name, retention: MAPS }
}

fn publication(key: u8) -> Publication {
    let tags = [("tag".to_owned(), key.to_string())].into();
    Publication {
        key: key.to_string(),
        data: vec![b'0' + key; 20].into(),
        tags,
        ..Publication::default()
    }
}

fn apply(broker: &MemoryBroker, call: &Call, now: Instant) {
    match *call {
        Call::Publish { channel, key, version } => {
            let idempotency_key = if key == 0 { String::new() } else { key.to_string() };
            let ttl = Duration::from_secs(900);
            let key_owner = (key % 2 == 1).then(|| KeyOwner { name: "user 1".to_owned(), ttl });
            let options =
                PublishOptions { idempotency_key, key_owner, version, ..PublishOptions::default() };
            let name = channel.to_string();
            let published =
                Broker::publish(broker, &name, publication(key), &options, RETENTION, now);
            published.wait().expect("never fails");
        }
        Call::Append { channel, message, is_final } => {
            let text = "some text".to_owned();
            let fragment = Some(Fragment { text, is_final, ..Fragment::default() });
            let append = Append { key: message.to_string(), fragment, ..Append::default() };
            let appended = broker.append(&channel.to_string(), append, RETENTION, now);
            let _refused = appended.wait().expect("never fails");
        }
        Call::RemoveHistory { channel } => {
            broker.remove_history(&channel.to_string(), now).wait().expect("never fails");
        }
        Call::Set { channel, key } => {
            let publish = MapPublish { publication: publication(key), ..MapPublish::default() };
            let name = channel.to_string();
            let set = MapBroker::publish(broker, map_channel(&name), publish, now);
            set.wait().expect("never fails").expect("is not refused");
        }
        Call::Remove { channel, key } => {
            let removal = MapRemoval { publication: publication(key), ..MapRemoval::default() };
            let name = channel.to_string();
            let removed = broker.remove(map_channel(&name), removal, now);
            removed.wait().expect("never fails").expect("is not refused");
        }
        Call::Clear { channel } => {
            broker.clear(map_channel(&channel.to_string()), now).wait().expect("never fails");
        }
    }
}

/// Everything that a client can read of a channel.
fn content(broker: &MemoryBroker, channel: u8, now: Instant) -> (Position, String) {
    let name = channel.to_string();
    if channel < 200 {
        let read = broker.history(&name, Query::default(), RETENTION, now);
        let slice = read.wait().expect("never fails");
        return (slice.top, format!("{slice:?}"));
    }
    let channel = map_channel(&name);
    let read = broker.read_state(channel, &StateQuery::default(), now).wait();
    let page = read.expect("never fails").expect("the newest state");
    let changes = broker.read_stream(channel, crate::map::ChangesQuery::default(), now);
    (page.top, format!("{page:?} {:?}", changes.wait()))
}

fn channels() -> impl Iterator<Item = u8> {
    (0..30).chain(200..206)
}

/// A channel that begins with nothing.
const LEFT_OUT: &str = "left out";
const UNIX_MS: u64 = 1_700_000_000_000;

fn head(generation: u64, is_planned: bool, now: Instant) -> SnapshotHead {
    let clock = SnapshotClock { now, unix_ms: UNIX_MS };
    SnapshotHead { generation, is_planned, clock, connections: 7 }
}

fn save(broker: &MemoryBroker, now: Instant) -> Vec<u8> {
    let mut file = Vec::new();
    let marks: Arc<dyn ChangeMarks> = Arc::new(ListedChanges::default());
    broker.save(head(1, true, now), Some(&marks), &mut file).expect("memory takes all");
    file
}

fn restore(file: &[u8], changes: &ChangesSince, clock: SnapshotClock) -> MemoryBroker {
    let state = restored(file, changes, clock);
    MemoryBroker::with_state(Arc::<Deliveries>::default(), 1 << 30, state)
}

fn restored(file: &[u8], changes: &ChangesSince, clock: SnapshotClock) -> MemoryState {
    let snapshot = Snapshot::read(&mut &*file).expect("a whole file");
    let options = RestoreOptions { changes, clock, is_left_out: &|name| name == LEFT_OUT };
    snapshot.restore(&options, &SystemChance).expect("a whole file")
}

/// A broker that is there already, and goes on from a file.
fn take_over(file: &[u8], clock: SnapshotClock) -> MemoryBroker {
    let (_, broker) = broker();
    broker.replace(restored(file, &ChangesSince::None, clock));
    broker
}

fn broker() -> (Arc<Deliveries>, MemoryBroker) {
    let deliveries = Arc::<Deliveries>::default();
    (Arc::clone(&deliveries), MemoryBroker::new(deliveries, 1 << 30))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_a_planned_stop_every_position_and_result_is_as_before(
        calls in prop::collection::vec(call(), 0..150),
        later in prop::collection::vec(call(), 0..50),
        is_takeover in any::<bool>(),
    ) {
        let now = Instant::now();
        let (_, before) = broker();
        calls.iter().for_each(|call| apply(&before, call, now));
        let file = save(&before, now);
        let clock = SnapshotClock { now, unix_ms: UNIX_MS };
        let after = if is_takeover {
            take_over(&file, clock)
        } else {
            restore(&file, &ChangesSince::None, clock)
        };
        prop_assert_eq!(before.history_bytes() > 0, after.history_bytes() > 0);
        // Both go on in the same way: idempotency keys, versions, growing messages and the epochs of later streams.
        for call in &later {
            apply(&before, call, now);
            apply(&after, call, now);
        }
        for channel in channels() {
            prop_assert_eq!(content(&before, channel, now), content(&after, channel, now));
        }
        prop_assert_eq!(before.suppressed(), SnapshotCounts::sum(&after, &calls, now));
    }

    #[test]
    fn no_crash_leaves_an_epoch_without_its_newest_publication(
        calls in prop::collection::vec((call(), 0..12_u8), 1..100),
    ) {
        let now = Instant::now();
        let mut disk = Disk::default();
        let (deliveries, broker) = broker();
        broker.mark_changes(&disk.begin());
        for (call, step) in &calls {
            apply(&broker, call, now);
            match step {
                // A snapshot, while publishers go on.
                0 => disk.save(&broker, &calls, now),
                // A snapshot that fails in the middle.
                1 => disk.fail_to_save(&broker, now),
                // A crash that is looked at.
                2..4 => {}
                _ => continue,
            }
            let Some(restored) = disk.restore(now) else { continue };
            for channel in channels() {
                let (top, restored_content) = content(&restored, channel, now);
                let (live, live_content) = content(&broker, channel, now);
                let key = (channel.to_string(), top.epoch);
                let delivered = deliveries.0.lock().get(&key).copied().unwrap_or(0);
                prop_assert!(top.offset >= delivered, "channel {} {:?} < {}", channel, top, delivered);
                if top.epoch == live.epoch {
                    prop_assert_eq!(restored_content, live_content);
                }
            }
        }
    }

    #[test]
    fn a_file_with_another_byte_or_a_missing_end_is_not_loaded(
        calls in prop::collection::vec(call(), 0..30),
        at in any::<prop::sample::Index>(),
        flipped in 1..=255_u8,
        is_cut in any::<bool>(),
    ) {
        let now = Instant::now();
        let (_, broker) = broker();
        calls.iter().for_each(|call| apply(&broker, call, now));
        let mut file = save(&broker, now);
        let at = at.index(file.len());
        if is_cut {
            file.truncate(at);
        } else {
            file[at] ^= flipped;
        }
        prop_assert!(Snapshot::read(&mut &*file).is_err());
    }

    #[test]
    fn any_records_in_valid_sections_are_loaded_or_refused(
        kind in 1..7_u8,
        payload in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut file = Vec::new();
        let mut writer = SectionWriter::begin(&mut file).expect("memory takes all");
        let hashes = Seeds::random(&SystemChance).record();
        writer.section(HEAD, &Head { hashes, ..Head::default() }).expect("memory takes all");
        writer.raw_section(kind, &payload).expect("memory takes all");
        writer.end().expect("memory takes all");
        let now = Instant::now();
        if let Ok(snapshot) = Snapshot::read(&mut &*file) {
            let clock = SnapshotClock { now, unix_ms: UNIX_MS };
            let changes = &ChangesSince::None;
            let options = RestoreOptions { changes, clock, is_left_out: &|_| false };
            let _refused = snapshot.restore(&options, &SystemChance).is_err();
        }
    }
}

/// Counters of suppressed publications, which begin again with a process.
struct SnapshotCounts;

impl SnapshotCounts {
    /// The counts of `after`, and those of the calls before it.
    fn sum(after: &MemoryBroker, calls: &[Call], now: Instant) -> crate::SuppressedCounts {
        let (_, again) = broker();
        calls.iter().for_each(|call| apply(&again, call, now));
        let first = again.suppressed();
        let second = after.suppressed();
        crate::SuppressedCounts {
            idempotency: first.idempotency + second.idempotency,
            version: first.version + second.version,
            keys_dropped: 0,
        }
    }
}

/// The newest snapshot and the lists of changes since.
#[derive(Default)]
struct Disk {
    snapshot: Option<(usize, Vec<u8>)>,
    lists: Vec<Arc<ListedChanges>>,
}

impl Disk {
    fn begin(&mut self) -> Arc<dyn ChangeMarks> {
        let list = Arc::<ListedChanges>::default();
        self.lists.push(Arc::clone(&list));
        list
    }

    fn save(&mut self, broker: &MemoryBroker, calls: &[(Call, u8)], now: Instant) {
        let marks = self.begin();
        let generation = self.lists.len() - 1;
        let mut out = Concurrent { file: Vec::new(), broker, calls, next: generation, now };
        broker
            .save(head(generation as u64, false, now), Some(&marks), &mut out)
            .expect("memory takes all");
        self.snapshot = Some((generation, out.file));
    }

    fn fail_to_save(&mut self, broker: &MemoryBroker, now: Instant) {
        let marks = self.begin();
        let generation = self.lists.len() as u64 - 1;
        let mut room = [0; 1000];
        let saved = broker.save(head(generation, false, now), Some(&marks), &mut &mut room[..]);
        assert!(saved.is_err());
    }

    fn restore(&self, now: Instant) -> Option<MemoryBroker> {
        let (_, file) = self.snapshot.as_ref()?;
        let snapshot = Snapshot::read(&mut file.as_slice()).expect("it is whole");
        let lists = self.lists.iter().map(|list| Some(list.0.lock().iter().copied().collect()));
        let changes = snapshot.changes_since((0..).zip(lists)).expect("no list is missing");
        let clock = SnapshotClock { now, unix_ms: UNIX_MS };
        Some(restore(file, &changes, clock))
    }
}

/// A file during whose writes publishers go on.
struct Concurrent<'a> {
    file: Vec<u8>,
    broker: &'a MemoryBroker,
    calls: &'a [(Call, u8)],
    next: usize,
    now: Instant,
}

impl Write for Concurrent<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.next += 1;
        if self.next.is_multiple_of(7) {
            let (call, _) = &self.calls[self.next % self.calls.len()];
            apply(self.broker, call, self.now);
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn publish(broker: &MemoryBroker, channel: &str, now: Instant) -> Position {
    let options = PublishOptions::default();
    let published = Broker::publish(broker, channel, publication(1), &options, RETENTION, now);
    published.wait().expect("never fails")
}

fn stored(broker: &MemoryBroker, channel: &str, now: Instant) -> usize {
    let slice = broker.history(channel, Query::default(), RETENTION, now).wait();
    slice.expect("never fails").publications.len()
}

#[test]
fn time_that_passes_between_two_processes_counts() {
    let now = Instant::now();
    let (_, before) = broker();
    let position = publish(&before, "news", now);
    let file = save(&before, now);
    let after = |down_s: u64| {
        let clock = SnapshotClock { now, unix_ms: UNIX_MS + down_s * 1000 };
        restore(&file, &ChangesSince::None, clock)
    };
    assert_eq!(stored(&after(599), "news", now), 1);
    assert_eq!(stored(&after(600), "news", now), 0);
    assert_eq!(publish(&after(600), "news", now), Position { offset: 2, ..position });
    assert_ne!(publish(&after(3600), "news", now).epoch, position.epoch);
}

#[test]
fn a_channel_that_is_left_out_has_another_epoch() {
    let now = Instant::now();
    let (_, before) = broker();
    let [position, _] = [LEFT_OUT, "news"].map(|name| publish(&before, name, now));
    let file = save(&before, now);
    let clock = SnapshotClock { now, unix_ms: UNIX_MS };
    let after = restore(&file, &ChangesSince::None, clock);
    assert_eq!((stored(&after, LEFT_OUT, now), stored(&after, "news", now)), (0, 1));
    assert_ne!(publish(&after, LEFT_OUT, now).epoch, position.epoch);
}

#[test]
fn a_clock_that_went_back_lengthens_nothing() {
    let now = Instant::now();
    let (_, before) = broker();
    publish(&before, "news", now);
    let file = save(&before, now);
    let clock = SnapshotClock { now, unix_ms: UNIX_MS - 3_000_000 };
    let after = restore(&file, &ChangesSince::None, clock);
    assert_eq!(stored(&after, "news", now + Duration::from_millis(599_999)), 1);
    assert_eq!(stored(&after, "news", now + Duration::from_secs(600)), 0);
}

#[test]
fn a_part_ends_with_the_channel_that_made_it_large() {
    let now = Instant::now();
    let (_, broker) = broker();
    let large = Retention { size: usize::MAX, ..RETENTION };
    let name = "a channel with many publications";
    let options = PublishOptions::default();
    for _ in 0..100_000 {
        Broker::publish(&broker, name, publication(1), &options, large, now)
            .wait()
            .expect("never fails");
    }
    let (_, stripe) = broker.stripe(name);
    let names = (0..100_000).map(|number| number.to_string());
    let others = names.filter(|other| std::ptr::eq(broker.stripe(other).1, stripe)).take(9);
    for other in others {
        publish(&broker, &other, now);
    }
    let clock = SnapshotClock { now, unix_ms: UNIX_MS };
    let (first, next) = stripe.lock().streams.save(0, &clock);
    let (rest, end) = stripe.lock().streams.save(next.expect("there are more"), &clock);
    assert_eq!((first.streams.len(), rest.streams.len(), end), (1, 9, None));
}

#[test]
fn a_file_of_another_version_or_program_says_so() {
    let read = |bytes: &[u8]| Snapshot::read(&mut &*bytes).expect_err("no snapshot").to_string();
    assert!(read(b"FANWIRE\x07").contains("version 7"));
    assert!(read(b"%PDF-1.7").contains("not a snapshot"));
    assert!(read(b"").contains("not a snapshot"));
}
