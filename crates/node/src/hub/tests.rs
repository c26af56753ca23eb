//! Tests of the hub that need its inside; everything else is a dialogue in `tests/it`.
//! In: a hub without sessions → out: no deadline.
//! Uses: an outbox that forgets; never sockets.
//! Behaviour a peer can see is tested in `tests/it`.

use fanwire_policy::options::Options;

use super::*;
use crate::broadcast::{Broadcast, DeltaMode};

/// An outbox that forgets.
struct Nowhere;

impl Outbox for Nowhere {
    fn send(&mut self, _connection: ConnectionKey, _message: &[u8]) {}

    fn deliver(
        &mut self,
        _connection: u32,
        _: SubscriptionIndex,
        _: &Arc<Broadcast>,
        _: DeltaMode,
    ) {
    }

    fn ping(&mut self, _connection: ConnectionKey) {}

    fn disconnect(&mut self, _connection: ConnectionKey, _disconnect: &Disconnect) {}
}

#[test]
fn a_hub_without_sessions_has_no_deadline() {
    let node = Node::new(Options::default()).expect("defaults are good");
    let mut hub = Hub::new(node, ShardId(0));
    assert_eq!(hub.next_deadline(), None);
    hub.advance(Instant::now(), &mut Nowhere);
}
