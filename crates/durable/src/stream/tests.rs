//! Tests of the state of a stream: producers, sequences, closing.
//! In: appends in turn → out: decisions and refusals.
//! Uses proptest against a model. Never: content, HTTP.
//! Changed here: the rules that clients rely on.

use fanwire_broker::{Epoch, Position};
use proptest::prelude::*;

use super::{
    AppendDecision, PRODUCER_LIFETIME_MS, ProducerTriple, StreamAppend, StreamConfig, StreamError,
    StreamState,
};
use crate::lifetime::StreamLifetime;

fn stream(lifetime: StreamLifetime) -> StreamState {
    let config = StreamConfig { content_type: "text/plain".to_owned(), lifetime, is_closed: false };
    StreamState::new(config, Position::default(), 0)
}

fn of(id: &str, epoch: u64, seq: u64) -> StreamAppend {
    let producer = Some(ProducerTriple { id: id.into(), epoch, seq });
    StreamAppend {
        content_type: Some("Text/Plain; charset=utf-8".to_owned()),
        producer,
        ..StreamAppend::default()
    }
}

/// Decides and, if the content is new, commits; with room for two producers.
fn send(
    stream: &mut StreamState,
    append: StreamAppend,
    now_ms: u64,
) -> Result<AppendDecision, StreamError> {
    let decision = stream.decide(&append, 2, now_ms)?;
    if decision == AppendDecision::Store {
        stream.commit(append, 2, now_ms);
    }
    Ok(decision)
}

const STORE: Result<AppendDecision, StreamError> = Ok(AppendDecision::Store);

#[test]
fn a_producer_sends_each_number_once_and_in_order() {
    let stream = &mut stream(StreamLifetime::Unlimited);
    let gap = |expected, received| Err(StreamError::Gap { expected, received });
    assert_eq!(send(stream, of("a", 3, 1), 0), gap(0, 1));
    assert_eq!(send(stream, of("a", 3, 0), 0), STORE);
    assert_eq!(send(stream, of("a", 3, 0), 0), Ok(AppendDecision::Duplicate(Some(0))));
    assert_eq!(send(stream, of("a", 3, 1), 0), STORE);
    assert_eq!(send(stream, of("a", 3, 0), 0), Ok(AppendDecision::Duplicate(Some(1))));
    assert_eq!(send(stream, of("a", 3, 3), 0), gap(2, 3));
    assert_eq!(send(stream, of("a", 2, 2), 0), Err(StreamError::StaleEpoch(3)));
    assert_eq!(send(stream, of("a", 4, 2), 0), Err(StreamError::EpochBegins));
    assert_eq!(send(stream, of("a", 4, 0), 0), STORE);
}

#[test]
fn producers_are_limited_and_forgotten_after_seven_days() {
    let stream = &mut stream(StreamLifetime::Unlimited);
    assert_eq!(send(stream, of("a", 0, 0), 0), STORE);
    assert_eq!(send(stream, of("b", 0, 0), 1), STORE);
    assert_eq!(send(stream, of("c", 0, 0), 2), Err(StreamError::Producers));
    assert_eq!(send(stream, of("a", 0, 1), 3), STORE);
    assert_eq!(send(stream, of("c", 0, 0), PRODUCER_LIFETIME_MS + 1), STORE);
    assert_eq!(send(stream, of("a", 0, 2), PRODUCER_LIFETIME_MS + 1), STORE, "used after b");
    assert_eq!(stream.producers.len(), 2);
}

#[test]
fn sequences_grow_in_byte_order() {
    let stream = &mut stream(StreamLifetime::Unlimited);
    let seq = |seq: &str| StreamAppend { seq: Some(seq.to_owned()), ..StreamAppend::default() };
    assert_eq!(send(stream, seq("2"), 0), STORE);
    for refused in ["10", "2", ""] {
        assert_eq!(send(stream, seq(refused), 0), Err(StreamError::Sequence("2".into())));
    }
    assert_eq!(send(stream, seq("a"), 0), STORE);
    assert_eq!(send(stream, seq("B"), 0), Err(StreamError::Sequence("a".into())));
}

#[test]
fn only_the_request_that_closed_a_stream_may_come_again() {
    let closing = |append: StreamAppend| StreamAppend { closes: true, ..append };
    let empty = StreamAppend::default;
    let by_nobody = &mut stream(StreamLifetime::Unlimited);
    assert_eq!(send(by_nobody, closing(empty()), 0), STORE);
    assert_eq!(send(by_nobody, closing(empty()), 0), Ok(AppendDecision::Duplicate(None)));
    assert_eq!(send(by_nobody, of("a", 0, 0), 0), Err(StreamError::Closed));
    let with_content = StreamAppend { content_type: Some("text/plain".to_owned()), ..empty() };
    assert_eq!(send(by_nobody, closing(with_content), 0), Err(StreamError::Closed));

    let by_producer = &mut stream(StreamLifetime::Unlimited);
    assert_eq!(send(by_producer, of("a", 1, 0), 0), STORE);
    assert_eq!(send(by_producer, closing(of("a", 1, 1)), 0), STORE);
    assert_eq!(
        send(by_producer, closing(of("a", 1, 1)), 0),
        Ok(AppendDecision::Duplicate(Some(1)))
    );
    for other in [of("a", 1, 0), of("a", 1, 2), of("b", 1, 1), of("a", 0, 1)] {
        assert_eq!(send(by_producer, closing(other), 0), Err(StreamError::Closed));
    }
}

#[test]
fn content_of_another_type_is_refused_before_a_number_is_used() {
    let stream = &mut stream(StreamLifetime::Unlimited);
    let other = StreamAppend { content_type: Some("text/html".to_owned()), ..of("a", 0, 0) };
    assert_eq!(send(stream, other, 0), Err(StreamError::ContentType("text/plain".to_owned())));
    assert_eq!(send(stream, of("a", 0, 0), 0), STORE);
}

#[test]
fn use_restarts_a_window_and_not_a_fixed_time() {
    let window = &mut stream(StreamLifetime::Window(2));
    assert!(!window.has_expired(1999) && window.has_expired(2000));
    window.touch(1999);
    assert!(!window.has_expired(3998) && window.has_expired(3999));
    window.touch(5);
    assert!(!window.has_expired(3998), "a clock that goes back takes nothing away");
    let fixed = &mut stream(StreamLifetime::Until { text: String::new(), unix_ms: 2000 });
    fixed.touch(1999);
    assert!(fixed.has_expired(2000));
}

#[test]
fn a_lost_position_begins_the_stream_again() {
    let epoch = Epoch::random();
    let stream = &mut stream(StreamLifetime::Unlimited);
    stream.start = Position { offset: 7, epoch };
    assert_eq!(stream.start(epoch).offset, 7);
    let other = Epoch::random();
    assert_eq!(stream.start(other), Position { offset: 0, epoch: other });
}

proptest! {
    /// Whatever producers send and repeat, each pair of epoch and number is stored once, and numbers of an epoch have no gap.
    #[test]
    fn nothing_is_stored_twice(sent in proptest::collection::vec((0..2_usize, 0..3_u64, 0..4_u64), 0..60)) {
        let stream = &mut stream(StreamLifetime::Unlimited);
        let mut stored: Vec<(usize, u64, u64)> = Vec::new();
        for (who, epoch, seq) in sent {
            if send(stream, of(["a", "b"][who], epoch, seq), 0) == STORE {
                prop_assert!(!stored.contains(&(who, epoch, seq)));
                prop_assert!(seq == 0 || stored.contains(&(who, epoch, seq - 1)));
                prop_assert!(stored.iter().all(|one| one.0 != who || one.1 <= epoch));
                stored.push((who, epoch, seq));
            }
        }
    }
}
