//! Tests of stored events.
//! In: events → out: asserted events that come back.
//! Uses: no clock. Never: a recorder.
//! Changed here: tests of how an event is stored.

use super::*;

fn event<'a>(kind: FlightEventKind, text: &'a str, detail: &'a str) -> FlightEvent<'a> {
    FlightEvent { kind, code: 3012, numbers: [7, u64::MAX], text, detail }
}

#[test]
fn an_event_comes_back_as_it_was() {
    let mut ring = Ring::default();
    for (after_ms, kind) in FlightEventKind::ALL.into_iter().enumerate() {
        ring.push(event(kind, "chat:1", "ttl"), after_ms as u64);
    }
    let stored: Vec<_> = ring.iter().collect();
    assert_eq!(stored.len(), FlightEventKind::ALL.len());
    for (at, (stored, kind)) in stored.iter().zip(FlightEventKind::ALL).enumerate() {
        let expected =
            StoredEvent { after_ms: at as u64, count: 1, event: event(kind, "chat:1", "ttl") };
        assert_eq!(*stored, expected);
        assert_eq!(kind as usize, at, "the table has the order of the variants");
    }
}

#[test]
fn the_newest_events_stay_within_the_bound() {
    let mut ring = Ring::default();
    for number in 0..10_000_u64 {
        let text = "é".repeat(number as usize % 50);
        ring.push(event(FlightEventKind::Subscribe, &text, &number.to_string()), number);
        assert!(ring.capacity() <= RING_BYTES_MAX, "{}", ring.capacity());
        let stored: Vec<_> = ring.iter().collect();
        assert_eq!(stored.iter().map(|it| usize::from(it.count)).sum::<usize>(), stored.len());
        let newest = stored.last().map(|it| (it.after_ms, it.event.detail.to_owned()));
        assert_eq!(newest, Some((number, number.to_string())));
        let first = number + 1 - stored.len() as u64;
        assert!(stored.iter().zip(first..).all(|(it, at)| it.after_ms == at), "no gap");
        assert!(number < 10 || stored.len() >= 5);
    }
}

#[test]
fn equal_events_are_counted_and_texts_are_cut() {
    let mut ring = Ring::default();
    let long = "ä".repeat(100);
    for after_ms in 0..70_000 {
        ring.push(event(FlightEventKind::Refuse, &long, &long), after_ms);
    }
    let stored: Vec<_> = ring.iter().collect();
    assert_eq!((stored.len(), stored[0].count, stored[0].after_ms), (1, u16::MAX, 69_999));
    assert_eq!((stored[0].event.text.len(), stored[0].event.detail.len()), (160, 48));
}

#[test]
fn an_empty_ring_owns_nothing() {
    let ring = Ring::default();
    assert_eq!((ring.iter().count(), ring.capacity()), (0, 0));
}
