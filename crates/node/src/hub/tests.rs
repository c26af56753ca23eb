//! Tests of the hub that need its inside; everything else is a dialogue in `tests/it`.
//! In: a hub without sessions, a subscription no command can make → out: deadlines, disconnect codes.
//! Uses: an outbox that keeps codes; never sockets.
//! Behaviour a peer can see is tested in `tests/it`.

use std::time::Duration;

use fanwire_protocol::Encoding;

use super::*;
use crate::broadcast::Broadcast;
use crate::options::Options;
use crate::roster::Seat;
use crate::session::{Phase, Terms};

/// An outbox that keeps disconnects.
#[derive(Default)]
struct Ends(Vec<u16>);

impl Outbox for Ends {
    fn send(&mut self, _connection: ConnectionKey, _message: &[u8]) {}

    fn deliver(&mut self, _connection: u32, _place: u32, _broadcast: &Arc<Broadcast>) {}

    fn ping(&mut self, _connection: ConnectionKey) {}

    fn disconnect(&mut self, _connection: ConnectionKey, disconnect: &Disconnect) {
        self.0.push(disconnect.code);
    }
}

/// No command can make a subscription of the server that expires, but the server's own calls will.
#[test]
fn an_expired_subscription_of_the_server_is_3006() {
    let now = Instant::now();
    let mut options = Options::default();
    options.client.insecure = true;
    let node = Node::starting_at(options, now, 0).expect("the options are good");
    let mut hub = Hub::new(Arc::clone(&node), ShardId(0));
    let key = ConnectionKey { index: 0, generation: 0 };
    let hello =
        Hello { encoding: Encoding::Json, frame_ping: true, transport: "websocket", user: None };
    let mut ends = Ends::default();
    hub.open(key, hello, now);
    hub.receive(key, b"{\"id\":1,\"connect\":{}}", now, &mut ends);
    assert_eq!(hub.roster.session(key).map(|session| session.phase), Some(Phase::Connected));
    let channel = node.join("a", ShardId(0));
    let terms = Terms::boxed(Default::default(), Some(10));
    hub.roster.sit_down(0, &channel, Seat { server_side: true, terms });
    hub.roster.schedule(&node, 0);
    for seconds in 1..=34 {
        hub.advance(now + Duration::from_secs(seconds), &mut ends);
        hub.pong(key);
    }
    assert!(ends.0.is_empty(), "10 s and a grace of 25 s");
    hub.advance(now + Duration::from_millis(35_040), &mut ends);
    assert_eq!(ends.0, [3006]);
    assert_eq!(node.counts().subscriptions, 0);
}

#[test]
fn a_hub_without_sessions_has_no_deadline() {
    let node = Node::new(Options::default()).expect("defaults are good");
    let mut hub = Hub::new(node, ShardId(0));
    assert_eq!(hub.next_deadline(), None);
    hub.advance(Instant::now(), &mut Ends::default());
}
