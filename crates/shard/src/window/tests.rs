//! Tests of a window's publications when subscriptions move.
//! In: publications of two channels, queued → out: the references of the next ones.
//! Uses windows and histories; never a connection.
//! Changed here: tests of `shard::window`.

use fanwire_deflate::gap::History;

use super::*;

#[test]
fn a_subscription_that_moves_takes_what_is_known_with_it() {
    let mut histories = [History::new(1 << 16, 2, 6), History::new(1 << 16, 2, 6)];
    let mut window = PeerWindow::default();
    let text = [b"a message of one channel, long enough", b"a message of another one, not shorter"];
    let mut publish = |channel: usize| histories[channel].publish(text[channel]).expect("it fits");
    for own in 0..2 {
        window.queued_publication(WindowIndex(own), &publish(own as usize), None);
    }
    window.moved(WindowIndex(1), WindowIndex(0));
    let next = publish(1);
    assert_ne!(window.reference(WindowIndex(0), &next, 15, 0), Reference::ALONE);
    window.queued_publication(WindowIndex(0), &next, None);
    window.moved(WindowIndex(7), WindowIndex(0));
    assert_eq!(
        window.reference(WindowIndex(0), &publish(1), 15, 0),
        Reference::ALONE,
        "nothing is known of it"
    );
    window.moved(WindowIndex(0), WindowIndex(3));
    assert_eq!(window.subscriptions.len(), 4, "places are made at need");
}
