//! Tests of the phases: which requests are accepted, what is read for them, when a client goes live.
//! In: requests and reads → out: steps; for random changes between the steps, the state of a client against that of the engine.
//! Uses: the memory engine. Never: sessions; `tests/it/maps.rs` plays the same over the protocol.
//! Changed here: tests of the state machine.

use std::collections::BTreeMap;

use bytes::Bytes;
use fanwire_broker::map::{MapBroker, MapChannel, MapPublish, MapRemoval, MapRetention};
use fanwire_broker::{Change, Deliver, DeliverOptions, MemoryBroker, Retention};
use fanwire_protocol::ClientInfo;
use proptest::prelude::*;

use super::*;

fn request(phase: i32) -> SubscribeRequest {
    SubscribeRequest { phase, ..SubscribeRequest::default() }
}

fn read(request: &SubscribeRequest) -> PageRequest {
    PageRequest::read(request, 10).expect("a valid request")
}

fn position(offset: u64, letter: &str) -> Position {
    Position { offset, epoch: Epoch::parse(&letter.repeat(8)).expect("letters") }
}

fn top(offset: u64, letter: &str) -> StreamSlice {
    StreamSlice { top: position(offset, letter), ..StreamSlice::default() }
}

fn page(offset: u64, letter: &str, cursor: &str) -> StatePage {
    let entry = |offset| Publication { offset, ..Publication::default() };
    let entries = vec![entry(1), entry(offset)];
    StatePage { entries, top: position(offset, letter), cursor: cursor.into() }
}

fn paging() -> Paging {
    Paging::new(true, Instant::now())
}

#[test]
fn only_a_first_request_begins_and_only_a_begun_subscribe_continues() {
    let state = request(2);
    let next = SubscribeRequest { cursor: "k".into(), ..request(2) };
    let stream = request(1);
    let recovery = SubscribeRequest { recover: true, ..request(1) };
    let cases = [
        (&state, Ok(true), Err(ErrorCode::ALREADY_SUBSCRIBED)),
        (&next, Err(ErrorCode::PERMISSION_DENIED), Ok(false)),
        (&stream, Err(ErrorCode::PERMISSION_DENIED), Ok(false)),
        (&recovery, Ok(true), Ok(false)),
        (&request(0), Ok(true), Ok(false)),
    ];
    for (request, without, with) in cases {
        assert_eq!(read(request).begins(false), without, "{request:?}");
        assert_eq!(read(request).begins(true), with, "{request:?}");
    }
    for phase in [-1, 3, i32::MAX] {
        assert_eq!(PageRequest::read(&request(phase), 10), Err(ErrorCode::BAD_REQUEST));
    }
    let made_up = SubscribeRequest { epoch: "made up".into(), ..request(1) };
    assert_eq!(PageRequest::read(&made_up, 10), Err(ErrorCode::UNRECOVERABLE_POSITION));
}

#[test]
fn an_ephemeral_map_has_pages_of_entries_only() {
    let mut paging = Paging::new(false, Instant::now());
    for phase in [0, 1] {
        assert_eq!(paging.begin(&read(&request(phase))), Err(ErrorCode::BAD_REQUEST), "{phase}");
    }
    let request = read(&request(2));
    let page = StatePage { cursor: "b".into(), ..StatePage::default() };
    let step = paging.entries_read(&request, page).expect("nothing is lost");
    assert!(
        matches!(step, PageStep::Send(result) if result.cursor == "b" && result.epoch.is_empty())
    );
    let step = paging.entries_read(&request, StatePage::default()).expect("nothing is lost");
    assert_eq!(step, PageStep::GoLive { since: Position::default(), entries: Vec::new() });
}

#[test]
fn the_position_of_the_first_page_counts_on_all_pages() {
    let mut paging = paging();
    let request = read(&request(2));
    let step = paging.entries_read(&request, page(5, "a", "k")).expect("nothing is lost");
    let PageStep::Send(first) = step else { panic!("the first page of two") };
    assert_eq!((first.offset, first.state.len()), (5, 2));
    // The entry with offset 16 has changed since; it comes with the changes.
    let step = paging.entries_read(&request, page(16, "a", "")).expect("nothing is lost");
    let PageStep::Send(last) = step else { panic!("more changed than fit in a page of changes") };
    assert_eq!((last.offset, last.phase, last.cursor.as_str()), (5, Phase::State as i32, ""));
    assert_eq!(last.state.len(), 1);
    let step = paging.entries_read(&request, page(15, "a", "")).expect("nothing is lost");
    let PageStep::GoLive { since, entries } = step else { panic!("a page of changes reaches 15") };
    assert_eq!((since, entries.len()), (position(5, "a"), 1));
}

#[test]
fn a_map_that_began_again_between_two_steps_is_112() {
    let lost = Err(ErrorCode::UNRECOVERABLE_POSITION);
    let mut paging = paging();
    let state = read(&request(2));
    assert!(paging.entries_read(&state, page(5, "a", "k")).is_ok());
    assert_eq!(paging.entries_read(&state, page(5, "b", "k")), lost);
    for phase in [0, 1, 2] {
        let epoch = "b".repeat(8);
        let other = SubscribeRequest { epoch, offset: 5, ..request(phase) };
        assert_eq!(paging.begin(&read(&other)), lost, "{phase}");
    }
    let unnamed = SubscribeRequest { offset: 5, ..request(0) };
    let step = PageStep::GoLive { since: position(5, "a"), entries: Vec::new() };
    assert_eq!(paging.begin(&read(&unnamed)), Ok(step), "the epoch of the first page counts");
}

#[test]
fn changes_are_read_up_to_the_top_of_the_first_request_for_them() {
    let mut paging = paging();
    let recovery = |offset| {
        let epoch = "a".repeat(8);
        read(&SubscribeRequest { offset, epoch, recover: true, ..request(1) })
    };
    let query = |offset, limit| {
        let since = Some(position(offset, "a"));
        PageStep::ReadChanges(ChangesQuery { since, limit: Some(limit), reverse: false })
    };
    assert_eq!(paging.begin(&recovery(5)), Ok(query(5, 0)), "the top only");
    assert_eq!(paging.changes_read(&recovery(5), top(30, "a")), Ok(query(5, 10)));
    let last = Publication { offset: 15, ..Publication::default() };
    let read = StreamSlice { publications: vec![last], ..top(90, "a") };
    let step = paging.changes_read(&recovery(5), read).expect("nothing is lost");
    let PageStep::Send(result) = step else { panic!("a page") };
    assert_eq!((result.offset, result.phase), (15, Phase::Stream as i32), "not the top");
    assert_eq!(paging.begin(&recovery(15)), Ok(query(15, 10)));
    let live = PageStep::GoLive { since: position(20, "a"), entries: Vec::new() };
    assert_eq!(paging.begin(&recovery(20)), Ok(live), "30 counts, and not 90");
    let far = recovery(u64::MAX);
    assert!(matches!(paging.begin(&far), Ok(PageStep::GoLive { .. })), "no overflow");
}

#[test]
fn the_time_of_a_client_is_limited_from_its_first_request_on() {
    let now = Instant::now();
    let paging = Paging::new(true, now);
    let second = Duration::from_secs(1);
    assert!(!paging.is_over(5 * second, now + 4 * second));
    assert!(paging.is_over(5 * second, now + 5 * second));
    assert!(!paging.is_over(Duration::ZERO, now + 500 * second), "no limit");
}

/// Drops what is delivered.
struct NoSubscribers;

impl Deliver for NoSubscribers {
    fn deliver(&self, _: &str, _: Publication, _: DeliverOptions) {}

    fn deliver_join_leave(&self, _: &str, _: Change, _: ClientInfo) {}
}

struct Map {
    broker: MemoryBroker,
    retention: MapRetention,
    now: Instant,
}

impl Map {
    fn new(stream_size: usize) -> Self {
        let ttl = Duration::from_secs(60);
        let stream = Retention { size: stream_size, ttl, meta_ttl: Duration::ZERO };
        let bytes_max = usize::MAX;
        let retention =
            MapRetention { key_ttl: Duration::ZERO, stream, entries_max: 1000, bytes_max };
        let broker = MemoryBroker::new(Arc::new(NoSubscribers), bytes_max);
        Self { broker, retention, now: Instant::now() }
    }

    fn channel(&self) -> MapChannel<'_> {
        MapChannel { name: "map", retention: self.retention }
    }

    /// Sets or removes a key.
    fn change(&self, key: u8, value: Option<u8>) {
        let key = format!("{key:03}");
        let publication = Publication { key, ..Publication::default() };
        let changed = match value {
            Some(value) => {
                let data = Bytes::from(vec![value]);
                let publication = Publication { data, ..publication };
                let publish = MapPublish { publication, ..MapPublish::default() };
                self.broker.publish(self.channel(), publish, self.now)
            }
            None => {
                let removal = MapRemoval { publication, ..MapRemoval::default() };
                self.broker.remove(self.channel(), removal, self.now)
            }
        };
        assert!(changed.wait().is_ok_and(|outcome| outcome.is_ok()), "nothing is refused");
    }

    fn entries(&self) -> BTreeMap<String, Bytes> {
        let all =
            MapBroker::read_state(&self.broker, self.channel(), &StateQuery::default(), self.now);
        let page = all.wait().expect("in memory").expect("no epoch was asked for");
        page.entries.into_iter().map(|entry| (entry.key, entry.data)).collect()
    }
}

/// A client as the SDK has it: it applies what it gets, and asks for the next page.
#[derive(Default)]
struct Client {
    entries: BTreeMap<String, Bytes>,
    request: SubscribeRequest,
}

impl Client {
    fn apply(&mut self, publications: Vec<Publication>) {
        for publication in publications {
            match publication.removed {
                true => drop(self.entries.remove(&publication.key)),
                false => drop(self.entries.insert(publication.key, publication.data)),
            }
        }
    }

    fn receive(&mut self, result: SubscribeResult) {
        if self.request.epoch.is_empty() || result.phase == Phase::Stream as i32 {
            self.request.epoch = result.epoch;
            self.request.offset = result.offset;
        }
        self.apply(result.state);
        self.apply(result.publications);
        self.request.phase = if result.cursor.is_empty() { 1 } else { 2 };
        self.request.cursor = result.cursor;
    }
}

/// Runs one request up to its reply. Returns whether the client is live, or the error.
fn run(
    map: &Map,
    paging: &mut Paging,
    client: &mut Client,
    mut between: impl FnMut(),
) -> Result<bool, ErrorCode> {
    let request = PageRequest::read(&client.request, 5)?;
    let mut step = paging.begin(&request)?;
    loop {
        between();
        step = match step {
            PageStep::ReadEntries(query) => {
                let read = map.broker.read_state(map.channel(), &query, map.now).wait();
                let page =
                    read.expect("in memory").map_err(|_| ErrorCode::UNRECOVERABLE_POSITION)?;
                paging.entries_read(&request, page)?
            }
            PageStep::ReadChanges(query) => {
                let read = map.broker.read_stream(map.channel(), query, map.now).wait();
                let slice =
                    read.expect("in memory").map_err(|_| ErrorCode::UNRECOVERABLE_POSITION)?;
                paging.changes_read(&request, slice)?
            }
            PageStep::Send(result) => {
                client.receive(*result);
                return Ok(false);
            }
            PageStep::GoLive { since, entries } => {
                client.apply(entries);
                let query = ChangesQuery { since: Some(since), ..ChangesQuery::default() };
                let read = map.broker.read_stream(map.channel(), query, map.now).wait();
                let slice =
                    read.expect("in memory").map_err(|_| ErrorCode::UNRECOVERABLE_POSITION)?;
                client.apply(slice.publications);
                return Ok(true);
            }
        };
    }
}

proptest! {
    /// Keys change before each read, also with a stream so short that a slow client loses it.
    #[test]
    fn a_client_that_is_live_has_the_entries_of_the_engine(
        changes in prop::collection::vec((0..40u8, prop::option::weighted(0.8, any::<u8>())), 1..400),
        per_read in 0..30usize,
        stream_size in 1..200usize,
    ) {
        let map = Map::new(stream_size);
        let mut changes = changes.into_iter();
        for (key, value) in changes.by_ref().take(60) {
            map.change(key, value.or(Some(0)));
        }
        let mut paging = paging();
        let mut client = Client { request: request(2), ..Client::default() };
        let ended = loop {
            let between = || changes.by_ref().take(per_read).for_each(|(key, value)| {
                if value.is_some() || map.entries().contains_key(&format!("{key:03}")) {
                    map.change(key, value);
                }
            });
            match run(&map, &mut paging, &mut client, between) {
                Ok(false) => {}
                Ok(true) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        match ended {
            Ok(()) => prop_assert_eq!(client.entries, map.entries()),
            Err(error) => prop_assert_eq!(error, ErrorCode::UNRECOVERABLE_POSITION),
        }
    }
}
