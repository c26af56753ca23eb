//! Unidirectional clients receive the bytes of the messages that others get, without their envelopes (protocol §25).
//! In: clients of every transport in one channel, publications and pushes of the server API → out: the bytes on their sockets.
//! Uses a `ConnectionWriter` and Fanwire's application on the test's own thread, and real sockets.
//! Changed here: frames and messages of unidirectional clients. Their sessions are tested in `node`.

use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::PublishOptions;
use fanwire_node::options::Options;
use fanwire_node::protocol::{Encoding, Publication};
use fanwire_node::{
    CommandSource, ConnectionInfo, ConnectionSelector, Node, NodeParts, Renewal,
    ServerSubscription, broker::Position,
};
use fanwire_protocol::StreamPosition;
use fanwire_shard::{
    Application as _, Budget, Compression, ConnectionWriter, ReceivedMessage, ShardSettings,
    SlotKey, Transport,
};

mod resume;

use super::NoticeInbox;
use crate::compression::{ContextSettings, Contexts, Policies};
use crate::realtime::testing::{frames, inflate};
use crate::realtime::{ConnectError, EncodeWorker, NewSession, PendingResponse, Realtime};

/// One shard with its clients, whose turns the test runs.
struct Shard {
    node: Arc<Node>,
    notices: Arc<NoticeInbox>,
    realtime: Realtime,
    out: ConnectionWriter,
    listener: TcpListener,
}

/// A client's socket, and its connection on the shard.
struct Peer(TcpStream, SlotKey);

impl Shard {
    fn new(joins_pushes: bool) -> Self {
        let mut options = Options::default();
        options.client.insecure = true;
        options.channel.without_namespace.history_size = 10;
        options.channel.without_namespace.history_ttl = std::time::Duration::from_secs(60);
        options.channel.without_namespace.force_recovery = true;
        let notices = Arc::<NoticeInbox>::default();
        let contexts = Arc::new(Contexts::new(ContextSettings {
            policies: Policies::new(&options.channel),
            level: 6,
            min_bytes: 0,
            gaps_max: 4,
            memory: Budget::new(1 << 20),
        }));
        let parts = NodeParts { prepare: Some(contexts.clone()), ..NodeParts::default() };
        let node = Node::with_parts(options, Instant::now(), crate::clock::unix_ms(), parts);
        let node = node.expect("valid options");
        let shard = node.attach(notices.clone());
        let realtime = Realtime::new(node.clone(), shard, contexts, EncodeWorker::default())
            .join_pushes(joins_pushes);
        let mut settings = ShardSettings { compression_verify: true, ..ShardSettings::default() };
        settings.uni_websocket.compression_min_bytes = 0;
        settings.last_message = crate::last_message;
        let out = ConnectionWriter::for_test(settings);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self { node, notices, realtime, out, listener }
    }

    fn open(
        &mut self,
        transport: Transport,
        compression: Compression,
        opening: NewSession,
    ) -> Peer {
        let address = self.listener.local_addr().expect("bound");
        let peer = TcpStream::connect(address).expect("it listens");
        peer.set_nonblocking(true).expect("a socket");
        let (socket, _) = self.listener.accept().expect("it has come");
        let key = self.out.open_for_test(socket, false, compression);
        self.out.set_transport_for_test(key, transport);
        self.realtime.open(key, opening, Instant::now(), &mut self.out);
        Peer(peer, key)
    }

    /// A client in the channel `a`, which has read everything.
    fn subscribed(&mut self, transport: Transport, compression: Compression) -> Peer {
        let mut peer = self.open(transport, compression, hello(transport).into());
        self.receive(
            &peer,
            match transport.is_unidirectional() {
                true => r#"{"subs":{"a":{}}}"#,
                false => "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"a\"}}",
            },
        );
        peer.read();
        peer
    }

    fn receive(&mut self, peer: &Peer, message: &str) {
        let message = ReceivedMessage::Text(message);
        self.realtime.receive(peer.1, message, Instant::now(), &mut self.out);
        self.out.flush_for_test();
    }

    fn publish(&mut self, data: &str) {
        let data = data.to_owned().into();
        let publication = Publication { data, ..Publication::default() };
        let published = self.node.channels().publish(
            "a",
            publication,
            PublishOptions::default(),
            Instant::now(),
        );
        published.wait().expect("accepted");
        self.turn();
    }

    /// The top of the channel `a`.
    fn top(&self) -> Position {
        let read = self.node.channels().history("a", &Default::default(), Instant::now());
        read.wait().expect("stored").top
    }

    fn turn(&mut self) {
        for notice in std::mem::take(&mut *self.notices.0.lock()) {
            self.realtime.notice(notice, Instant::now(), &mut self.out);
        }
        self.out.flush_for_test();
    }
}

impl Peer {
    fn read(&mut self) -> Vec<u8> {
        let mut received = Vec::new();
        match self.0.read_to_end(&mut received) {
            Ok(_) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => received,
            Err(error) => panic!("{error}"),
        }
    }

    fn text(&mut self) -> String {
        String::from_utf8(self.read()).expect("text")
    }

    /// Text messages of a WebSocket.
    fn messages(&mut self) -> Vec<String> {
        let bytes = self.read();
        let messages = frames(&bytes).map(|(head, payload)| {
            let message = match head {
                0x81 => payload.to_vec(),
                0xc1 => inflate(&mut flate2::Decompress::new(false), payload),
                other => panic!("no text message: {other}"),
            };
            String::from_utf8(message).expect("text")
        });
        messages.collect()
    }
}

fn hello(transport: Transport) -> ConnectionInfo {
    let command_source = match transport.is_unidirectional() {
        true => CommandSource::None,
        false => CommandSource::Connection,
    };
    let transport = transport.name();
    ConnectionInfo {
        encoding: Encoding::Json,
        frame_ping: false,
        transport,
        command_source,
        user: None,
        last_event_id: None,
        headers: Vec::new(),
    }
}

#[test]
fn every_transport_gets_the_same_publication_with_its_own_bytes_around_it() {
    let mut shard = Shard::new(false);
    let standalone = Compression::Standalone { window_bits: 15 };
    let [mut websocket, mut uni, mut stream, mut uni_stream, mut events, mut uni_events] = [
        Transport::WebSocket,
        Transport::UniWebSocket,
        Transport::HttpStream,
        Transport::UniHttpStream,
        Transport::EventStream,
        Transport::UniEventStream,
    ]
    .map(|transport| shard.subscribed(transport, Compression::Raw));
    let mut compressed = shard.subscribed(Transport::UniWebSocket, standalone);
    let [mut another, mut context] = [standalone, Compression::Context { window_bits: 15 }]
        .map(|compression| shard.subscribed(Transport::WebSocket, compression));
    for number in 1..=3 {
        let data = format!("\"{}\"", "ab".repeat(100));
        shard.publish(&data);
        let id = format!("{number}.{}", shard.top().epoch);
        let epoch = format!(r#","epoch":"{}""#, shard.top().epoch);
        let epoch = if number == 1 { epoch } else { String::new() };
        let push = format!(r#"{{"channel":"a","pub":{{"data":{data},"offset":{number}{epoch}}}}}"#);
        let message = format!(r#"{{"push":{push}}}"#);
        assert_eq!(websocket.messages(), [message.as_str()]);
        assert_eq!(another.messages(), [message.as_str()]);
        assert!(!context.read().is_empty());
        assert_eq!(uni.messages(), [push.as_str()]);
        let frame = compressed.read();
        let (head, payload) = frames(&frame).next().expect("a frame");
        let inflated = inflate(&mut flate2::Decompress::new(false), payload);
        assert_eq!((head, inflated), (0xc1, push.clone().into_bytes()), "and refers to nothing");
        assert_eq!(stream.text(), format!("{message}\n"));
        assert_eq!(uni_stream.text(), format!("{push}\n"));
        assert_eq!(events.text(), format!("data: {message}\n\n"));
        assert_eq!(uni_events.text(), format!("data: {push}\nid: {id}\n\n"));
    }
    let traffic = shard.out.counters_for_test().of(Transport::UniHttpStream, false);
    assert_eq!(traffic.messages_out.value(), 4, "the connect push and three publications");
}

/// A subscription that recovers is several pushes of one turn.
fn recovered_by_the_server(joins_pushes: bool) -> Vec<String> {
    let mut shard = Shard::new(joins_pushes);
    shard.publish("1");
    shard.publish("2");
    let opening = hello(Transport::UniWebSocket).into();
    let mut peer = shard.open(Transport::UniWebSocket, Compression::Raw, opening);
    shard.receive(&peer, "{}");
    peer.read();
    let Position { epoch, .. } = shard.top();
    let recover_since = Some(StreamPosition { offset: 0, epoch: epoch.to_string() });
    let subscription =
        ServerSubscription { channel: "a".into(), recover_since, ..Default::default() };
    drop(shard.node.connections().subscribe(
        ConnectionSelector::default(),
        subscription,
        Instant::now(),
    ));
    shard.turn();
    shard.turn();
    let messages = peer.messages();
    messages.into_iter().map(|message| message.replace(&epoch.to_string(), "E")).collect()
}

const PUSHES: [&str; 3] = [
    r#"{"channel":"a","subscribe":{"recoverable":true,"epoch":"E","positioned":true}}"#,
    r#"{"channel":"a","pub":{"data":1,"offset":1}}"#,
    r#"{"channel":"a","pub":{"data":2,"offset":2}}"#,
];

#[test]
fn pushes_that_leave_together_are_messages_of_their_own() {
    assert_eq!(recovered_by_the_server(false), PUSHES);
}

#[test]
fn pushes_that_leave_together_are_joined_if_wanted() {
    assert_eq!(recovered_by_the_server(true), [PUSHES.join("\n")]);
}

#[test]
fn control_pushes_and_pings_are_bare_too() {
    let mut shard = Shard::new(false);
    let mut peer = shard.subscribed(Transport::UniEventStream, Compression::Raw);
    let target = ConnectionSelector::default();
    shard.node.connections().refresh(target, Renewal::default()).wait().expect("one node");
    shard.turn();
    assert_eq!(peer.text(), "data: {\"refresh\":{}}\n\n");
    while shard.realtime.next_deadline().is_some_and(|_| peer.text() != "data: {}\n\n") {
        let due = shard.realtime.next_deadline().expect("just seen");
        shard.realtime.advance(due, &mut shard.out);
        shard.out.flush_for_test();
    }
    shard.realtime.shut_down(peer.1, &mut shard.out);
    shard.out.flush_for_test();
    let end = "data: {\"disconnect\":{\"code\":3001,\"reason\":\"shutdown\"}}\n\n";
    assert_eq!(peer.text(), end);
}

#[test]
fn a_response_that_waits_for_connect_has_its_head_or_its_status() {
    let respond = |refusal: Option<ConnectError<'_>>| match refusal {
        None => b"200\n".to_vec(),
        Some(ConnectError { code, text }) => format!("{code} {text}").into_bytes(),
    };
    let opening = || {
        let response = PendingResponse { coding: None, make: Box::new(respond) };
        NewSession { connection: hello(Transport::UniHttpStream), response: Some(response) }
    };
    let mut shard = Shard::new(false);
    let mut peer = shard.open(Transport::UniHttpStream, Compression::Raw, opening());
    assert_eq!(peer.text(), "");
    shard.receive(&peer, "{}");
    assert!(peer.text().starts_with("200\n{\"connect\":{\"client\":\""));
    shard.publish("1");
    assert_eq!(peer.text(), "", "it is not in the channel");
    let mut refused = shard.open(Transport::UniHttpStream, Compression::Raw, opening());
    shard.receive(&refused, r#"{"token":"x"}"#);
    assert!(refused.text().starts_with("3500 invalid token"));
    let mut stopped = shard.open(Transport::UniHttpStream, Compression::Raw, opening());
    shard.realtime.shut_down(stopped.1, &mut shard.out);
    shard.out.flush_for_test();
    assert_eq!(stopped.text(), "3001 shutdown");
}
