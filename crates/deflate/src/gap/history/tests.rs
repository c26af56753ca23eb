//! Tests of `history`: what is kept, for how long it can be parsed, and in how much memory.
//! Publications → memory and parses.
//! Uses proptest and `gap`; what the parses decode to is tested in `tests/it`.
//! Changed here: cases of limits.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::gap::{SubscriptionWindow, WindowCounter};

#[test]
fn a_message_that_is_empty_or_too_long_is_no_publication() {
    for (bytes_max, most) in [(1 << 15, History::MESSAGE_BYTES_MAX), (1_024, 768), (0, 384)] {
        let mut history = History::new(bytes_max, 4, 6);
        assert_eq!(history.message_bytes_max(), most);
        assert!(history.publish(b"").is_none());
        assert!(history.publish(&vec![0; most + 1]).is_none());
        for _ in 0..5 {
            assert!(history.publish(&vec![0; most]).is_some());
        }
        let newest = history.publish(&vec![0; most]).expect("a usual length");
        assert!(newest.depth(Depth::Several) >= 1, "the one before is held");
    }
}

#[test]
fn a_history_that_has_gone_on_parses_no_more() {
    let mut history = History::new(2_000, 4, 6);
    let first = history.publish(&[1; 1_000]).expect("a usual length");
    assert!(history.parse(&first, Depth::Alone).is_some());
    for _ in 0..4 {
        history.publish(&[2; 1_000]).expect("a usual length");
    }
    assert!(history.parse(&first, Depth::Alone).is_none());
}

proptest! {
    #[test]
    fn what_the_next_one_may_refer_to_is_what_a_search_finds(
        steps in vec((1usize..3_000, 0usize..40), 1..200),
        shorter in 1usize..100,
    ) {
        let mut history = History::new(32_768, 4, 6);
        for (bytes, kind) in steps {
            match kind {
                0 => history.resize(1_024),
                1 => history.resize(16_384),
                2 => history.resize(32_768),
                _ => drop(history.publish(&vec![7; (bytes / shorter).max(1)])),
            }
            let end = history.window.len();
            let next = PublicationRange { index: history.starts.len(), start: end, end };
            for window in [0, bytes, 32_768 - bytes, 32_768] {
                prop_assert_eq!(history.held(next, window), history.held_by_next(window));
            }
        }
    }
}

#[test]
fn memory_is_bounded_whatever_is_published() {
    for bytes_max in [0, 512, 1_000, 1_024, 4_000, 32_768, 1 << 20] {
        for bytes in [1, 20, 33, 300, 5_000, 16_384] {
            let mut history = History::new(bytes_max, 4, 6);
            let most = History::memory_for(bytes_max);
            for at in 0..3_000usize {
                let _ = history.publish(&vec![at as u8; bytes - at % 3 % bytes]);
                assert!(history.memory() <= most, "{} of {most}", history.memory());
            }
        }
    }
}

#[test]
fn a_history_of_1_kib_takes_less_than_6_kb() {
    assert!(History::memory_for(1 << 10) < 6_000, "{}", History::memory_for(1 << 10));
    assert!(History::memory_for(1 << 9) < 3_200, "{}", History::memory_for(1 << 9));
    assert!(History::memory_for(1 << 15) < 185_000, "{}", History::memory_for(1 << 15));
}

#[test]
fn peers_keep_their_context_when_a_history_is_resized() {
    let mut history = History::new(4_096, 8, 6);
    let (mut window, mut counter) = (SubscriptionWindow::default(), WindowCounter::default());
    let mut publish = |history: &mut History| {
        counter.advance(10); // other traffic
        let publication = history.publish(&[7; 300]).expect("a usual length");
        let reference = window.reference(&publication, counter, 15);
        window.queued(&publication, &mut counter);
        assert!(history.parse(&publication, reference.depth()).is_some());
        reference.gaps().len()
    };
    let mut depths = vec![];
    for _ in 0..10 {
        depths.push(publish(&mut history));
    }
    history.resize(1_024);
    for _ in 0..2 {
        depths.push(publish(&mut history));
    }
    history.resize(32_768);
    for _ in 0..6 {
        depths.push(publish(&mut history));
    }
    assert_eq!(depths, [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 3, 3, 5, 6, 7, 8, 8, 8]);
}

#[test]
fn resizing_gives_memory_back() {
    let mut history = History::new(32_768, 4, 6);
    for _ in 0..200 {
        history.publish(&[7; 500]).expect("a usual length");
    }
    for bytes_max in [16_384, 2_048, 512, 1_024, 8_192] {
        history.resize(bytes_max);
        assert_eq!(history.bytes_max(), bytes_max);
        let most = History::memory_for(bytes_max);
        assert!(history.memory() <= most, "{} of {most}", history.memory());
    }
}

#[test]
fn a_publication_that_no_longer_fits_is_gone_after_resizing() {
    let mut history = History::new(4_096, 4, 6);
    let publication = history.publish(&[7; 2_000]).expect("a usual length");
    history.resize(1_024);
    assert!(history.parse(&publication, Depth::Alone).is_none());
    let next = history.publish(&[7; 500]).expect("a usual length");
    assert_eq!(next.depth(Depth::Several), 0);
}

#[test]
fn a_publication_of_another_history_is_not_found() {
    let mut histories = [History::new(4096, 1, 6), History::new(4096, 1, 6)];
    let [one, other] = histories.each_mut().map(|history| history.publish(b"equal places"));
    let (one, other) = (one.expect("short"), other.expect("short"));
    assert!(histories[0].parse(&one, Depth::Alone).is_some());
    assert!(histories[0].parse(&other, Depth::Alone).is_none());
}

#[test]
fn depths_have_indices_in_their_order() {
    assert!(Depth::all().map(Depth::index).eq(0..Depth::COUNT));
}

#[test]
fn a_quote_is_a_part_of_the_newest_publication_and_for_all_peers_the_same() {
    let mut history = History::new(4_096, 4, 6);
    assert!(history.newest().is_none() && history.embed(0..1).is_none());
    let message = b"{\"push\":{\"data\":12345}}";
    history.publish(message).expect("a usual length");
    assert_eq!(history.newest(), Some(&message[..]));
    assert!(history.embed(9..9).is_none() && history.embed(9..message.len() + 1).is_none());
    let embedded_part = history.embed(9..22).expect("a part");
    assert_eq!(history.embed(9..22), Some(embedded_part));
    assert_eq!(history.embed(9..21), None);
    let next = history.publish(message).expect("a usual length");
    assert!(next.offers(Depth::Embedded));
    let parse = history.parse(&next, Depth::Embedded).expect("the newest one");
    let mut payload = Vec::new();
    parse.emit(&[40], &mut payload);
    let mut shadow = crate::Shadow::new(15);
    let reply = [&b"[reply:"[..], &message[9..22], &[b'.'; 27]].concat();
    let mut frame = Vec::new();
    crate::Compressor::new(6).standalone(&reply, &mut frame);
    assert_eq!(shadow.check(&frame, &reply), Ok(()));
    assert_eq!(shadow.check(&payload, message), Ok(()));
    let after = history.publish(message).expect("a usual length");
    assert!(!after.offers(Depth::Embedded), "no peer got an embedded part since");
}

#[test]
fn a_quote_of_a_publication_that_is_gone_is_none() {
    let mut history = History::new(4_096, 4, 6);
    history.publish(&[7; 2_000]).expect("a usual length");
    assert!(history.embed(10..1_990).is_some());
    history.resize(1_024);
    assert!(history.newest().is_none() && history.embed(10..1_990).is_none());
    let next = history.publish(&[7; 500]).expect("a usual length");
    assert!(!next.offers(Depth::Embedded));
}
