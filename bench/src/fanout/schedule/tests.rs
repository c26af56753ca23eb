//! Tests of memberships, order and bookkeeping.
//! In: choices and arrivals → out: channels of subscribers, completed publications.
//! Uses `schedule` only; opens nothing.
//! What rounds do with it is tested by running them.

use super::*;

#[test]
fn subscribers_have_different_choices_that_reach_all_channels() {
    let choice = Choice { each: 5, all: 20 };
    let memberships: Vec<_> = (0..100).map(|number| choice.of_subscriber(number)).collect();
    for channels in &memberships {
        assert_eq!(channels.len(), 5);
        assert!(channels.is_sorted_by(|one, other| one < other));
    }
    assert!((0..20).all(|channel| memberships.iter().any(|one| one.contains(&channel))));
    assert_ne!(memberships[0], memberships[1]);
    assert_eq!(Choice { each: 3, all: 3 }.of_subscriber(7), [0, 1, 2]);
}

#[test]
fn a_publication_is_complete_when_its_channels_subscribers_have_it() {
    let mut ledger = Ledger::new(vec![vec![0], vec![0, 1], vec![1]]);
    ledger.published(0, Instant::now());
    ledger.published(1, Instant::now());
    ledger.publication(2, b"").expect("the second one");
    ledger.publication(1, b"").expect("the first one");
    ledger.publication(1, b"").expect("the second one");
    assert_eq!((ledger.open.len(), ledger.deliveries), (2, 3), "the first one is not complete");
    ledger.publication(0, b"").expect("the first one");
    assert!(ledger.open.is_empty());
    assert!(ledger.publication(0, b"").is_err(), "nothing was published");
}

fn ledger(subscribers: usize, open: usize) -> Ledger {
    let mut ledger = Ledger::new(vec![vec![0]; subscribers]);
    (0..open).for_each(|_| ledger.published(0, Instant::now()));
    ledger
}

#[test]
fn with_one_channel_a_publication_is_complete_when_all_have_it() {
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
