//! The route of one message, step by step and without sockets: the U of ARCHITECTURE.md.
//! In: the bytes of one publish command → out: the bytes that two subscribers get.
//! Uses every module of the route in its order; this test is a tour for new developers.
//! Changed here: the tour, whenever the route changes.

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use fanwire_node::{
    Broadcast, CommandSource, ConnectionInfo, ConnectionKey, DeltaMode, Hub, Inbox, Node, Notice,
    Options, Outbox, ShardId, SubscriptionIndex,
};
use fanwire_protocol::{Disconnect, Encoding};
use fanwire_ws::{Event, Input, Limits, Pool, Reader};

/// Output of the hub: messages for one connection, and publications.
#[derive(Default)]
struct Out {
    messages: Vec<(u32, Vec<u8>)>,
    deliveries: Vec<(u32, Arc<Broadcast>)>,
}

impl Outbox for Out {
    fn send(&mut self, connection: ConnectionKey, message: &[u8]) {
        self.messages.push((connection.index, message.to_vec()));
    }
    fn deliver(
        &mut self,
        connection: u32,
        _: SubscriptionIndex,
        broadcast: &Arc<Broadcast>,
        _: DeltaMode,
    ) {
        self.deliveries.push((connection, broadcast.clone()));
    }
    fn ping(&mut self, _: ConnectionKey) {}
    fn disconnect(&mut self, _: ConnectionKey, disconnect: &Disconnect) {
        panic!("nobody is disconnected on this tour: {disconnect:?}");
    }
}

#[derive(Default)]
struct Notices(Mutex<Vec<Notice>>);

impl Inbox for Notices {
    fn push(&self, notice: Notice) {
        self.0.lock().expect("one thread").push(notice);
    }
}

#[test]
fn the_route_of_one_message() {
    let now = Instant::now();
    let letters = Arc::new(Notices::default());
    let mut hub = Hub::new(node(letters.clone()), ShardId(0));
    let mut out = Out::default();
    two_subscribers_are_at_rest(&mut hub, &mut out, now);

    // 1–2: bytes of a masked frame become a message.
    let mut bytes = masked(br#"{"id":3,"publish":{"channel":"news","data":{"goal":1}}}"#);
    let (mut reader, mut pool) = (Reader::new(false), Pool::new());
    let mut input = Input::new(&mut bytes);
    let Ok(Some(Event::Text(message))) = reader.receive(&mut input, &mut pool, &LIMITS) else {
        panic!("one text message")
    };

    // 3–5: the message becomes a command, the command an effect, the effect a publication, ordered by the broker.
    out.messages.clear();
    hub.receive(key(0), message.as_bytes(), now, &mut out);
    assert!(out.messages.is_empty(), "the publisher receives its publication before the reply");

    // The broadcast router put one broadcast into the inbox of the only shard with subscribers. The reply waits behind it.
    let mut notices = std::mem::take(&mut *letters.0.lock().expect("one thread"));
    assert_eq!(notices.len(), 2);

    // 6: the hub selects the subscribers.
    hub.notice(notices.remove(0), now, &mut out);
    assert_eq!(out.deliveries.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1]);
    let broadcast = out.deliveries[0].1.clone();
    assert!(Arc::ptr_eq(&broadcast, &out.deliveries[1].1), "one broadcast for all");
    hub.notice(notices.remove(0), now, &mut out);
    let (_, reply) = out.messages.pop().expect("a reply");
    assert_eq!(reply, br#"{"id":3,"publish":{}}"#);

    // 7: the envelope is written once per encoding.
    let push = broadcast.message(Encoding::Json).expect("the data is JSON");
    let text = String::from_utf8(push.to_vec()).expect("UTF-8");
    assert!(
        text.starts_with(r#"{"push":{"channel":"news","pub":{"data":{"goal":1},"info":{"#),
        "{text}"
    );
    assert_eq!(push.as_ptr(), broadcast.message(Encoding::Json).expect("again").as_ptr());

    // 8: one frame is made for all peers that can read the same; 9 is a write per dirty connection: see `traffic` and
    // `context`, over sockets.
}

const LIMITS: Limits =
    Limits { message_bytes_max: 65_536, inflated_bytes_max: 655_360, fragments_max: 65_536 };

fn node(inbox: Arc<Notices>) -> Arc<Node> {
    let mut options = Options::default();
    options.client.insecure = true;
    let node = Node::new(options).expect("defaults are valid");
    node.attach(inbox);
    node
}

/// One speaks JSON, the other Protobuf.
fn two_subscribers_are_at_rest(hub: &mut Hub, out: &mut Out, now: Instant) {
    hub.open(key(0), hello(Encoding::Json), now);
    hub.open(key(1), hello(Encoding::Protobuf), now);
    let commands = b"{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"news\"}}";
    hub.receive(key(0), commands, now, out);
    hub.receive(key(1), b"\x04\x08\x01\x22\x00\x0a\x08\x02\x2a\x06\x0a\x04news", now, out);
    assert_eq!(out.messages.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 0, 1, 1]);
}

fn key(index: u32) -> ConnectionKey {
    ConnectionKey { index, generation: 1 }
}

fn hello(encoding: Encoding) -> ConnectionInfo {
    ConnectionInfo {
        encoding,
        frame_ping: false,
        transport: "websocket",
        command_source: CommandSource::Connection,
        user: None,
        last_event_id: None,
        headers: Vec::new(),
    }
}

fn masked(payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let mut bytes = vec![0x81, 0x80 | payload.len() as u8];
    bytes.extend_from_slice(&mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}
