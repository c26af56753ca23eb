//! Tests of where a durable consumer begins that is made again.
//! In: positions, times and numbers of streams → out: policies.
//! Uses values only. Never: a NATS server, which tests/it has.
//! A loss of a stream or of a consumer is a test here.

use super::*;

fn position() -> StreamPosition {
    StreamPosition { created: SystemTime::UNIX_EPOCH, next: 11, given_back: BTreeSet::new() }
}

fn check(position: &StreamPosition, age: Duration, last: u64, expect: DeliverPolicy) {
    assert_eq!(position.begin(SystemTime::UNIX_EPOCH + age, last), expect);
}

#[test]
fn a_consumer_goes_on_behind_what_was_acknowledged_unless_the_stream_is_another_one() {
    let goes_on = DeliverPolicy::ByStartSequence { start_sequence: 11 };
    check(&position(), Duration::ZERO, 10, goes_on);
    check(&position(), Duration::ZERO, 500, goes_on);
    // The stream was made again, or has lost its end.
    check(&position(), Duration::from_nanos(1), 500, DeliverPolicy::All);
    check(&position(), Duration::ZERO, 9, DeliverPolicy::All);
}

#[test]
fn a_message_that_was_given_back_is_the_begin_until_it_is_acknowledged() {
    let mut position = position();
    position.settle(11, true);
    position.settle(12, false);
    position.settle(13, true);
    let begin = |start_sequence| DeliverPolicy::ByStartSequence { start_sequence };
    check(&position, Duration::ZERO, 20, begin(12));
    position.settle(12, true);
    check(&position, Duration::ZERO, 20, begin(14));
}
