//! Tests of a round's bookkeeping.
//! In: arrivals in many orders → out: which publications are complete.
//! Uses `Ledger` only; starts nothing.
//! Measuring itself is never tested: it is timed.

use super::*;

fn ledger(subscribers: usize, open: usize) -> Ledger {
    let mut ledger = Ledger::new(subscribers);
    let published_at = Instant::now();
    ledger.open.extend((0..open).map(|_| Open { published_at, arrivals: 0 }));
    ledger
}

#[test]
fn a_publication_is_complete_when_all_have_it() {
    let mut ledger = ledger(2, 2);
    for subscriber in [0, 0, 1] {
        ledger.publication(subscriber, b"").expect("expected");
    }
    assert_eq!((ledger.completed, ledger.open.len(), ledger.deliveries), (1, 1, 3));
    assert!(ledger.missing().contains("publication 2 of this round has not reached 1 of 2"));
    ledger.publication(1, b"").expect("expected");
    assert_eq!((ledger.completed, ledger.latencies_ms.len()), (2, 2));
}

#[test]
fn a_message_too_many_ends_the_run() {
    let mut ledger = ledger(2, 1);
    ledger.publication(0, b"").expect("expected");
    assert!(ledger.publication(0, b"").is_err());
}
