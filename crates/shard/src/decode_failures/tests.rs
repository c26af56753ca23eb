//! Tests of the list of peers that failed to decode.
//! In: closes at moments → out: whether a peer gets context at later ones.
//! Uses moments made by hand, no clock.
//! Changed here: expectations of how long and how many.

use super::*;

const CONTEXT: Compression = Compression::Context { window_bits: 15 };

#[test]
fn a_peer_that_failed_is_remembered_for_an_hour() {
    let (decode_failures, now) = (DecodeFailures::default(), Instant::now());
    let [one, other] = ["one", "other"].map(|shown| Peer::of(&shown));
    decode_failures.note(one, CONTEXT, now);
    assert!(
        decode_failures.failed_recently(one, now + MEMORY / 2)
            && !decode_failures.failed_recently(other, now)
    );
    assert!(!decode_failures.failed_recently(one, now + MEMORY));
}

#[test]
fn a_failure_without_context_says_nothing() {
    let (decode_failures, now) = (DecodeFailures::default(), Instant::now());
    for compression in [Compression::Raw, Compression::Standalone { window_bits: 15 }] {
        decode_failures.note(Peer::of(&"one"), compression, now);
    }
    assert!(!decode_failures.failed_recently(Peer::of(&"one"), now));
}

#[test]
fn of_too_many_the_oldest_is_forgotten() {
    let (decode_failures, now) = (DecodeFailures::default(), Instant::now());
    for number in 0..=PEERS_MAX {
        decode_failures.note(Peer::of(&number), CONTEXT, now);
    }
    assert!(
        !decode_failures.failed_recently(Peer::of(&0usize), now)
            && decode_failures.failed_recently(Peer::of(&PEERS_MAX), now)
    );
}
