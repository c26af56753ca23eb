//! Tests of what a feed says of names that are taken away while it confirms them.
//! In: pushes, made up → out: witnesses.
//! Uses a door in memory. Never: connections.
//! Change here: tests of `feed.rs`; real losses are in `tests/it/`.

use std::sync::{OnceLock, Weak};

use fanwire_broker::{Change, ClientId, Deliver, Delta, Epoch};
use fanwire_protocol::{ClientInfo, Publication};

use super::*;
use crate::redis::keys::{Keys, Kind};

/// Takes all names away from a feed as soon as it says that one is heard again.
#[derive(Default)]
struct Thief(OnceLock<Weak<Feed>>);

impl Deliver for Thief {
    fn deliver(
        &self,
        _: &str,
        _: Publication,
        _: Epoch,
        _: Delta,
        _: Option<ClientId>,
        _: Instant,
    ) {
    }

    fn deliver_join_leave(&self, _: &str, _: Change, _: ClientInfo) {}

    fn report_possible_gap(&self, _: &str) {
        let feed = self.0.get().and_then(Weak::upgrade).expect("it says so");
        assert_eq!(feed.take(|_| true).len(), 1);
    }
}

/// A name was subscribed, and lost, and is subscribed again for somebody who waits for that.
#[test]
fn nobody_vouches_for_a_name_that_was_taken_away_since_it_was_heard() {
    let (keys, thief) = (Keys::new("p", false), Arc::new(Thief::default()));
    let name = keys.of(Kind::Feed, "a");
    let mouth = Arc::new(Mouth::new(keys, Arc::new(Health::at(std::iter::empty()))));
    mouth.deliver_to(Arc::clone(&thief) as _);
    let feed = Arc::new(Feed::nowhere(mouth, Guided::default(), Duration::from_secs(1)));
    thief.0.set(Arc::downgrade(&feed)).expect("once");
    let subscribe = || {
        let turn = feed.shared.roll.lock().turn(Instant::now(), 1);
        assert_eq!(turn.subscribe.len(), 1);
        let data = vec![Value::BulkString(name.clone().into()), Value::Int(1)];
        feed.shared.take(PushInfo { kind: PushKind::Subscribe, data });
    };
    feed.want(&name);
    subscribe();
    feed.shared.lose();
    let sure = Arc::new(OnceLock::new());
    let told = Arc::clone(&sure);
    feed.when_heard(&name, move |heard| {
        let _ = told.set(heard.expect("it was heard").is_sure());
    });
    subscribe();
    assert_eq!(sure.get(), Some(&false));
}
