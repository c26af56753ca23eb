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
    for place in 0..2 {
        window.queued_publication(place, &publish(place as usize), None);
    }
    window.moved(1, 0);
    let next = publish(1);
    assert_ne!(window.reference(0, &next, 15, 0), Reference::ALONE);
    window.queued_publication(0, &next, None);
    window.moved(7, 0);
    assert_eq!(window.reference(0, &publish(1), 15, 0), Reference::ALONE, "nothing is known of it");
    window.moved(0, 3);
    assert_eq!(window.subscriptions.len(), 4, "places are made at need");
}
