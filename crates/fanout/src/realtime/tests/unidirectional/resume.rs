//! Clients of unidirectional streams that come back with the id of their last event (protocol §25).
//! In: publications, clients with ids of every kind → out: missed publications, then live ones; or the message that some are lost.
//! Uses the shard of the parent module, real sockets; ids are read from the bytes that clients got.
//! Changed here: what a returning client receives. How an id is read from a request is tested in `edge`.

use fanwire_node::LastEventId;

use super::*;

impl Shard {
    /// A client in the channel `a` whose request names this event.
    fn returning(&mut self, transport: Transport, id: &str, request: &str) -> Peer {
        let last_event_id = Some(id).filter(|id| !id.is_empty()).map(LastEventId::parse);
        let hello = ConnectionInfo { last_event_id, ..hello(transport) };
        let peer = self.open(transport, Compression::Raw, hello.into());
        self.receive(&peer, request);
        peer
    }
}

/// Fields of one event.
#[derive(Debug, Default, PartialEq)]
struct Event {
    id: String,
    kind: String,
    data: String,
}

impl Peer {
    /// The events since the last call, without those of connects.
    fn events(&mut self) -> Vec<Event> {
        let text = self.text();
        let events = text.split_terminator("\n\n").map(|event| {
            let mut fields = Event::default();
            for line in event.lines() {
                let (name, value) = line.split_once(": ").expect("a field");
                match name {
                    "id" => fields.id = value.to_owned(),
                    "event" => fields.kind = value.to_owned(),
                    "data" => fields.data = value.to_owned(),
                    other => panic!("no field: {other}"),
                }
            }
            fields
        });
        events.collect()
    }

    /// The id and number of each publication, and the ids of connect pushes; the last one is where the client is.
    fn numbers(&mut self, id: &mut String) -> Vec<u64> {
        let mut numbers = Vec::new();
        for event in self.events() {
            if !event.id.is_empty() {
                *id = event.id;
            }
            assert_eq!(event.kind, "", "{}", event.data);
            if let Some(data) = event.data.strip_prefix(r#"{"channel":"a","pub":{"data":"#) {
                let digits = data.split(|c: char| !c.is_ascii_digit()).next().expect("a number");
                numbers.push(digits.parse().expect("a number"));
                assert_eq!(id.split('.').next(), Some(digits), "the offset is the number here");
            }
        }
        numbers
    }
}

const REQUEST: &str = r#"{"subs":{"a":{}}}"#;

#[test]
fn a_client_gets_every_publication_once_wherever_it_was_cut() {
    let mut shard = Shard::new(false);
    let mut published = 0;
    for cut_after in 0..8 {
        let (mut id, mut got) = (String::new(), Vec::new());
        let first = published + 1;
        for round in 0..4 {
            let mut peer = shard.returning(Transport::UniEventStream, &id, REQUEST);
            let mut cut = id.clone();
            for number in peer.numbers(&mut cut) {
                got.push(number);
            }
            id = cut;
            for _ in 0..cut_after {
                published += 1;
                shard.publish(&published.to_string());
            }
            got.extend(peer.numbers(&mut id));
            let key = peer.1;
            drop(peer);
            let cause = fanwire_shard::CloseCause::Other;
            shard.realtime.close(key, cause, Instant::now(), &shard.out);
            if round < 3 {
                published += 2;
                shard.publish(&(published - 1).to_string());
                shard.publish(&published.to_string());
            }
        }
        assert_eq!(got, Vec::from_iter(first..=published), "cut after {cut_after}");
    }
}

#[test]
fn missed_publications_are_events_of_their_own() {
    let mut shard = Shard::new(false);
    (1..=3).for_each(|number| shard.publish(&number.to_string()));
    let epoch = shard.top().epoch;
    let mut peer = shard.returning(Transport::UniEventStream, &format!("1.{epoch}"), REQUEST);
    let events = peer.events();
    let ids: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids, [1, 2, 3].map(|offset| format!("{offset}.{epoch}")));
    assert!(events[0].data.contains(r#""recovered":true"#), "{}", events[0].data);
    assert!(!events[0].data.contains("publications"), "{}", events[0].data);
    assert_eq!(events[2].data, r#"{"channel":"a","pub":{"data":3,"offset":3}}"#);
    let mut lines = shard.returning(Transport::UniHttpStream, &format!("2.{epoch}"), REQUEST);
    let text = lines.text();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.ends_with("{\"channel\":\"a\",\"pub\":{\"data\":3,\"offset\":3}}\n"), "{text}");
}

#[test]
fn a_large_recovery_has_ids_too() {
    let mut shard = Shard::new(false);
    let long = "x".repeat(100_000);
    (1..=5).for_each(|number| shard.publish(&format!("\"{number}{long}\"")));
    let epoch = shard.top().epoch;
    let mut peer = shard.returning(Transport::UniEventStream, &format!("0.{epoch}"), REQUEST);
    let mut ids = Vec::new();
    while ids.len() < 6 {
        shard.turn();
        shard.out.writable_for_test(peer.1);
        ids.extend(peer.read().split(|byte| *byte == b'\n').filter_map(|line| {
            let id = line.strip_prefix(b"id: ")?;
            Some(String::from_utf8_lossy(id).into_owned())
        }));
    }
    assert_eq!(ids, [0, 1, 2, 3, 4, 5].map(|offset| format!("{offset}.{epoch}")));
}

#[test]
fn the_last_event_counts_more_than_the_position_of_the_request() {
    let mut shard = Shard::new(false);
    (1..=3).for_each(|number| shard.publish(&number.to_string()));
    let epoch = shard.top().epoch;
    let request = format!(r#"{{"subs":{{"a":{{"recover":true,"offset":1,"epoch":"{epoch}"}}}}}}"#);
    let mut first = shard.returning(Transport::UniEventStream, "", &request);
    let events = first.events();
    assert_eq!((events.len(), &events[0].id), (1, &format!("3.{epoch}")));
    assert!(events[0].data.contains(r#""publications":[{"data":2,"#), "as without ids");
    let mut back = shard.returning(Transport::UniEventStream, &format!("2.{epoch}"), &request);
    let ids = back.events().into_iter().map(|event| event.id).collect::<Vec<_>>();
    assert_eq!(ids, [2, 3].map(|offset| format!("{offset}.{epoch}")));
}

#[test]
fn what_cannot_be_recovered_is_an_event_of_its_own_type() {
    let mut shard = Shard::new(false);
    (1..=20).for_each(|number| shard.publish(&number.to_string()));
    let epoch = shard.top().epoch;
    let cases = [
        (format!("3.{epoch}"), REQUEST, "size"),
        (format!("21.{epoch}"), REQUEST, "epoch"),
        ("5.AbCdEfGh".to_owned(), REQUEST, "epoch"),
        ("garbage".to_owned(), REQUEST, "invalid"),
        ("9".repeat(1 << 20), REQUEST, "invalid"),
        (format!("20.{epoch}"), r#"{"subs":{"a":{},"b":{}}}"#, "channels"),
        (format!("20.{epoch}"), "{}", "channels"),
    ];
    for (id, request, reason) in &cases {
        let mut peer = shard.returning(Transport::UniEventStream, id, request);
        let events = peer.events();
        assert_eq!(events.len(), 2, "{reason}: {events:?}");
        let Event { id, kind, data } = &events[1];
        assert_eq!((id.as_str(), kind.as_str()), ("", "unrecovered"));
        let start = format!(r#"{{"reason":"{reason}","message":""#);
        assert!(data.starts_with(&start), "{data}");
        assert!(serde_json::from_str::<serde_json::Value>(data).is_ok(), "{data}");
        let is_one = *request == REQUEST;
        assert_eq!(events[0].id, if is_one { format!("20.{epoch}") } else { String::new() });
    }
    let mut lines = shard.returning(Transport::UniHttpStream, "garbage", REQUEST);
    let text = lines.text();
    let last = text.lines().last().expect("a line");
    assert!(last.starts_with(r#"{"unrecovered":{"reason":"invalid","message":""#), "{last}");
    let mut fresh = shard.returning(Transport::UniEventStream, "", REQUEST);
    assert_eq!(fresh.events().len(), 1, "a client without an id missed nothing");
}
