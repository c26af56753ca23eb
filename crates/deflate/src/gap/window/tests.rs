//! Tests of `window`: sizes, and which depth a connection gets.
//! Publications and other traffic → references.
//! Uses `gap`; what the frames decode to is tested in `tests/it`.
//! Changed here: cases of the choice.

use super::*;
use crate::gap::History;

#[test]
fn a_connection_takes_8_bytes_and_a_subscription_32() {
    assert_eq!(size_of::<WindowCounter>(), 8);
    assert_eq!(size_of::<SubscriptionWindow>(), 32);
}

#[test]
fn the_first_publication_stands_alone_and_the_next_ones_run() {
    check(&[100; 6], |_| 0, 15, &["a", "r1", "r2", "r3", "r4", "r5"]);
}

#[test]
fn other_traffic_in_between_makes_gaps() {
    check(&[100; 6], |_| 7, 15, &["a", "g1", "g2", "g3", "g4", "g4"]);
}

#[test]
fn other_traffic_once_ends_the_run_and_not_the_context() {
    let expect = ["a", "r1", "r2", "r3", "r4", "g4", "g4"];
    check(&[100; 7], |at| 7 * usize::from(at == 5), 15, &expect);
}

#[test]
fn a_window_that_does_not_hold_several_is_used_for_one() {
    check(&[300; 7], |_| 100, 10, &["a", "g1", "g1", "g1", "g1", "g1", "g1"]);
    check(&[600; 3], |_| 0, 10, &["a", "a", "a"]);
}

#[test]
fn a_window_that_does_not_hold_all_is_used_for_most_or_half_of_them() {
    check(&[150; 6], |_| 100, 10, &["a", "g1", "g2", "g3", "g3", "g3"]);
    // Of three there is no half.
    check(&[150; 6], |_| 250, 10, &["a", "g1", "g2", "g1", "g2", "g2"]);
}

#[test]
fn a_large_publication_at_the_end_of_the_window_is_referred_to_from_about_its_own_place() {
    let other = |bytes| move |at| if at == 1 { bytes } else { 0 };
    check(&[2_000; 2], other(32_768 - 4_000), 15, &["a", "g1"]);
    check(&[2_000; 2], other(32_768 - 3_999), 15, &["a", "f"]);
    check(&[2_000; 2], other(32_768 - 2_250), 15, &["a", "f"]);
    check(&[2_000; 2], other(32_768 - 2_249), 15, &["a", "a"]);
    check(&[1_000; 2], other(32_768 - 1_999), 15, &["a", "a"]);
}

#[test]
fn much_other_traffic_ends_the_context() {
    check(&[100; 3], |_| 33_000, 15, &["a", "a", "a"]);
}

#[test]
fn a_missed_publication_ends_the_context() {
    let mut history = History::new(1 << 15, 4, 6);
    let (mut window, mut counter) = (SubscriptionWindow::default(), WindowCounter::default());
    let mut publish = || history.publish(&[b'x'; 50]).expect("a usual length");
    window.queued(&publish(), &mut counter);
    publish();
    let publication = publish();
    assert_eq!(window.reference(&publication, counter, 15), Reference::ALONE);
    window.queued(&publication, &mut counter);
    assert_eq!(window.reference(&publish(), counter, 15).depth(), Depth::Run(3));
}

#[test]
fn another_history_of_the_channel_starts_without_context() {
    let (mut window, mut counter) = (SubscriptionWindow::default(), WindowCounter::default());
    let mut history = History::new(1 << 15, 4, 6);
    window.queued(&history.publish(b"a message").expect("a usual length"), &mut counter);
    let mut history = History::new(1 << 15, 4, 6);
    for _ in 0..3 {
        let publication = history.publish(b"a message").expect("a usual length");
        assert_eq!(window.reference(&publication, counter, 15), Reference::ALONE);
    }
}

#[test]
fn a_quote_stands_for_the_newest_publication_once() {
    let mut history = History::new(1 << 15, 4, 6);
    let (mut window, mut counter) = (SubscriptionWindow::default(), WindowCounter::default());
    let publish = |history: &mut History| history.publish(&[b'x'; 100]).expect("short");
    publish(&mut history);
    let embedded_part = history.embed(10..90).expect("a part");
    counter.advance(1_000);
    window.embedded(embedded_part, 50, counter);
    counter.advance(200); // the message that embeds
    let first = publish(&mut history);
    let reference = window.reference(&first, counter, 15);
    assert_eq!((reference.depth(), reference.gaps()), (Depth::Embedded, &[150][..]));
    assert_eq!(window.reference(&first, counter, 8).depth(), Depth::Embedded);
    let mut later = counter;
    later.advance(7);
    assert_eq!(window.reference(&first, later, 8), Reference::ALONE, "157 + 100 > 256");
    window.queued(&first, &mut counter);
    let second = publish(&mut history);
    let reference = window.reference(&second, counter, 15);
    assert_eq!(second.depth(reference.depth()), 1, "the embedded part does not count among them");
}

#[test]
fn a_publication_missed_after_a_quote_ends_the_context() {
    let mut history = History::new(1 << 15, 4, 6);
    let (mut window, counter) = (SubscriptionWindow::default(), WindowCounter::default());
    history.publish(&[b'x'; 100]).expect("short");
    window.embedded(history.embed(10..90).expect("a part"), 0, counter);
    history.publish(&[b'x'; 100]).expect("short");
    history.embed(10..90).expect("to another peer");
    let next = history.publish(&[b'x'; 100]).expect("short");
    assert_eq!(window.reference(&next, counter, 15), Reference::ALONE);
}

fn check(sizes: &[usize], other: impl Fn(usize) -> usize, window_bits: u8, expect: &[&str]) {
    let mut history = History::new(1 << 15, 4, 6);
    let (mut window, mut counter) = (SubscriptionWindow::default(), WindowCounter::default());
    let mut found = Vec::new();
    for (at, size) in sizes.iter().enumerate() {
        let publication = history.publish(&vec![b'x'; *size]).expect("a usual length");
        counter.advance(other(at));
        let reference = window.reference(&publication, counter, window_bits);
        let kind = match reference.depth() {
            Depth::Alone | Depth::AloneWithin(_) => "a".to_owned(),
            Depth::Far => "f".to_owned(),
            Depth::Newest | Depth::Half | Depth::Most | Depth::Several => {
                format!("g{}", reference.gaps().len())
            }
            Depth::Embedded => "q".to_owned(),
            depth @ Depth::Run(_) => format!("r{}", publication.depth(depth)),
        };
        found.push(kind);
        window.queued(&publication, &mut counter);
    }
    assert_eq!(found, expect);
}
