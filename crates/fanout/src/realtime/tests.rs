//! Tests of the broadcast path from the hub to the sockets: its allocations.
//! In: a publication for few and for many subscribers → out: allocations on the shard's thread, bytes on sockets.
//! Uses `allocation-counter` (per thread) and real sockets; never another thread.
//! Changed here: the promise that a subscriber costs no allocation.

use std::{io::Read, net::TcpListener, time::Duration};

use allocation_counter::measure;
use fanwire_broker::PublishOptions;
use fanwire_node::{CommandSource, ConnectionInfo, NodeParts, Options};
use fanwire_protocol::Publication;
use parking_lot::Mutex;

use super::*;
use crate::compression::{ContextSettings, Policies};
use fanwire_shard::{Budget, Compression, ShardSettings};

mod disconnects;
mod latest;
mod receipts;
mod server;
mod unidirectional;
mod wall_clock;

#[derive(Default)]
struct NoticeInbox(Mutex<Vec<Notice>>);

impl Inbox for NoticeInbox {
    fn push(&self, notice: Notice) {
        self.0.lock().push(notice);
    }
}

/// Allocations of one broadcast; an earlier broadcast has filled the buffers.
fn allocations_per_broadcast(subscribers: usize, compression: Compression, delta: &str) -> u64 {
    let now = Instant::now();
    let mut options = Options::default();
    options.client.insecure = true;
    let open = &mut options.channel.without_namespace;
    open.allowed_delta_types = vec!["fossil".into()];
    open.delta_publish = true;
    open.keep_latest_publication = true;
    let notices = Arc::new(NoticeInbox::default());
    let contexts = Arc::new(Contexts::new(ContextSettings {
        policies: Policies::new(&options.channel),
        level: 6,
        min_bytes: 0,
        gaps_max: 4,
        memory: Budget::new(1 << 20),
    }));
    let parts = NodeParts { prepare: Some(contexts.clone()), ..NodeParts::default() };
    let node = Node::with_parts(options, now, unix_ms(), parts);
    let node = node.expect("defaults are valid");
    let mut realtime = Realtime::new(
        node.clone(),
        node.attach(notices.clone()),
        contexts,
        EncodeWorker::default(),
    );
    let mut out = ConnectionWriter::for_test(settings());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut peers = Vec::new();
    for _ in 0..subscribers {
        let address = listener.local_addr().expect("bound");
        peers.push(std::net::TcpStream::connect(address).expect("listening"));
        let (socket, _) = listener.accept().expect("a peer is waiting");
        let key = out.open_for_test(socket, false, compression);
        realtime.open(key, hello().into(), now, &mut out);
        let commands = format!(
            r#"{{"id":1,"connect":{{}}}}
            {{"id":2,"subscribe":{{"channel":"a","delta":"{delta}"}}}}"#
        );
        realtime.receive(key, ReceivedMessage::Text(&commands), now, &mut out);
    }
    out.flush_for_test();
    let mut publish = || {
        let publication =
            Publication { data: format!("\"{}\"", "ab".repeat(100)).into(), ..Default::default() };
        node.channels()
            .publish("a", publication, PublishOptions::default(), now)
            .wait()
            .expect("accepted");
        let notice = notices.0.lock().pop().expect("one shard listens");
        measure(|| {
            realtime.notice(notice, now, &mut out);
            out.flush_for_test();
        })
        .count_total
    };
    publish();
    publish();
    let counted = publish();
    for peer in &mut peers {
        peer.set_read_timeout(Some(Duration::from_secs(5))).expect("a valid timeout");
        assert!(peer.read(&mut [0; 1024]).expect("the bytes are there") > 0);
    }
    counted
}

#[test]
fn a_broadcast_allocates_nothing_per_subscriber() {
    for compression in [
        Compression::Raw,
        Compression::Standalone { window_bits: 15 },
        Compression::Context { window_bits: 15 },
    ] {
        for (delta, most) in [("", 8), ("fossil", 32)] {
            let counted = [20, 400].map(|n| allocations_per_broadcast(n, compression, delta));
            assert_eq!(counted[0], counted[1], "{compression:?} {delta}");
            let many = counted[1];
            assert!(many <= most, "{compression:?} {delta}: {many} for one publication");
        }
    }
}

/// A client that only answers pings is not held while shards lag.
#[test]
fn a_pong_counts_as_no_command() {
    let node = Node::new(Options::default()).expect("defaults are valid");
    let contexts = Arc::new(Contexts::new(ContextSettings {
        policies: Policies::new(&node.options().channel),
        level: 6,
        min_bytes: 0,
        gaps_max: 4,
        memory: Budget::new(1 << 20),
    }));
    let shard = node.attach(Arc::new(NoticeInbox::default()));
    let mut realtime = Realtime::new(node, shard, contexts, EncodeWorker::default());
    let mut out = ConnectionWriter::for_test(settings());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut done = |encoding, message: &[u8]| {
        let peer = std::net::TcpStream::connect(listener.local_addr().expect("bound"));
        let (socket, _) = listener.accept().expect("a peer is waiting");
        let key = out.open_for_test(socket, encoding == Encoding::Protobuf, Compression::Raw);
        let now = Instant::now();
        realtime.open(key, ConnectionInfo { encoding, ..hello() }.into(), now, &mut out);
        let done = realtime.receive(key, ReceivedMessage::Binary(message), now, &mut out);
        drop(peer);
        done
    };
    for (encoding, connect, pong) in [
        (Encoding::Json, &br#"{"id":1,"connect":{}}"#[..], &b"{}"[..]),
        (Encoding::Protobuf, b"\x04\x08\x01\x22\x00", b"\0"),
    ] {
        assert_eq!((done(encoding, connect), done(encoding, pong)), (1, 0), "{encoding:?}");
    }
}

fn hello() -> ConnectionInfo {
    ConnectionInfo {
        encoding: Encoding::Json,
        frame_ping: false,
        transport: "websocket",
        command_source: CommandSource::Connection,
        user: None,
        last_event_id: None,
        headers: Vec::new(),
    }
}

fn settings() -> ShardSettings {
    ShardSettings { compression_min_bytes: 0, ..ShardSettings::default() }
}
