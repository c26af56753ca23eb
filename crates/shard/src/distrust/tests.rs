//! Tests of the memory for peers that failed to decode.
//! In: closes at moments → out: who gets context at later ones.
//! Uses moments made by hand, no clock.
//! Changed here: expectations of how long and how many.

use super::*;

const CONTEXT: Compression = Compression::Context { window_bits: 15 };

#[test]
fn a_peer_that_failed_is_remembered_for_an_hour() {
    let (distrust, now) = (Distrust::default(), Instant::now());
    let [one, other] = ["one", "other"].map(|shown| Peer::of(&shown));
    distrust.note(one, CONTEXT, now);
    assert!(distrust.knows(one, now + MEMORY / 2) && !distrust.knows(other, now));
    assert!(!distrust.knows(one, now + MEMORY));
}

#[test]
fn a_failure_without_context_says_nothing() {
    let (distrust, now) = (Distrust::default(), Instant::now());
    for compression in [Compression::Raw, Compression::Standalone { window_bits: 15 }] {
        distrust.note(Peer::of(&"one"), compression, now);
    }
    assert!(!distrust.knows(Peer::of(&"one"), now));
}

#[test]
fn of_too_many_the_oldest_is_forgotten() {
    let (distrust, now) = (Distrust::default(), Instant::now());
    for number in 0..=PEERS_MAX {
        distrust.note(Peer::of(&number), CONTEXT, now);
    }
    assert!(!distrust.knows(Peer::of(&0usize), now) && distrust.knows(Peer::of(&PEERS_MAX), now));
}
