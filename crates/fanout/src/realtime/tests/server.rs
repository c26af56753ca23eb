//! A server of one shard whose turns a test runs on its own thread.
//! In: a node, clients with their first messages → out: its turn, the counters of its hub, the peers of its sockets.
//! Uses Fanwire's application and real sockets; never a thread, a handshake or HTTP.
//! Changed here: the environment of the turn. Expectations live in the tests.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_node::{CommandSource, ConnectionInfo, HubCounters, Node, NodeParts, Options};
use fanwire_protocol::{Disconnect, Encoding};
use fanwire_shard::testing::TestShard;
use fanwire_shard::{Budget, Compression, ShardSettings};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use crate::clock::unix_ms;
use crate::compression::{ContextSettings, Contexts, Policies};
use crate::realtime::{BacklogCounters, EncodeWorker, Realtime, RealtimeCounters, ShardInbox};

/// One shard of a server, on the thread of the test.
pub(super) struct Server {
    pub(super) node: Arc<Node>,
    pub(super) shard: TestShard<Realtime>,
    pub(super) counters: Arc<HubCounters>,
    /// Counters of waiting publications, by namespace.
    pub(super) backlogs: Arc<[BacklogCounters]>,
    pub(super) peers: Vec<TcpStream>,
}

impl Server {
    pub(super) fn of(options: Options) -> Self {
        Self::starting_at(options, unix_ms())
    }

    /// A server whose clock shows `unix_ms` now.
    pub(super) fn starting_at(options: Options, unix_ms: u64) -> Self {
        let contexts = Arc::new(Contexts::new(ContextSettings {
            policies: Policies::new(&options.channel),
            level: 6,
            min_bytes: 128,
            gaps_max: 4,
            memory: Budget::new(1 << 20),
        }));
        let parts = NodeParts { prepare: Some(contexts.clone()), ..NodeParts::default() };
        let node = Node::with_parts(options, Instant::now(), unix_ms, parts);
        let node = node.expect("good options");
        let settings = ShardSettings {
            slow_close: (Disconnect::SLOW.code, "slow"),
            compression_verify: true,
            ..ShardSettings::default()
        };
        let mut counters = None;
        let shard = TestShard::new(settings, |inbox| {
            let shard = node.attach(Arc::new(ShardInbox(inbox)));
            let realtime = Realtime::new(node.clone(), shard, contexts, EncodeWorker::default());
            counters = Some(realtime.counters());
            realtime
        });
        let RealtimeCounters { hub, backlogs } = counters.expect("the application was made");
        Self { node, shard, counters: hub, backlogs, peers: Vec::new() }
    }

    /// Opens a client with this first message.
    pub(super) fn open(&mut self, user: Option<String>, commands: &str) {
        self.open_with(Compression::Raw, user, commands);
    }

    /// Opens a client as [`open`](Self::open) does, with this compression.
    pub(super) fn open_with(
        &mut self,
        compression: Compression,
        user: Option<String>,
        commands: &str,
    ) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (socket, _) = listener.accept().expect("it has come");
        set_socket_send_buffer_size(&socket, SOCKET_BYTES).expect("a socket");
        set_socket_recv_buffer_size(&peer, SOCKET_BYTES).expect("a socket");
        let frame = frame(commands);
        let hello = ConnectionInfo {
            encoding: Encoding::Json,
            frame_ping: false,
            transport: "websocket",
            command_source: CommandSource::Connection,
            user,
            last_event_id: None,
            headers: Vec::new(),
        };
        self.shard.open(socket, frame, compression, hello.into());
        self.peers.push(peer);
        self.take_turn();
    }

    /// Sends a message of an open client.
    pub(super) fn send(&mut self, client: usize, commands: &str) {
        self.peers[client].write_all(&frame(commands)).expect("an open socket");
        self.shard.turn_with_events(Duration::ZERO);
    }

    pub(super) fn take_turn(&mut self) {
        self.shard.turn();
    }
}

/// A masked text frame (RFC 6455 §5.2).
fn frame(text: &str) -> Vec<u8> {
    let mut frame = match u16::try_from(text.len()).expect("a small message") {
        bytes @ 0..126 => vec![0x81, 0x80 | bytes as u8],
        bytes => [[0x81, 0x80 | 126], bytes.to_be_bytes()].concat(),
    };
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// Buffers of the kernel that few publications fill. A loopback sends 64 KiB at once, and waits for a timer if a peer
/// has less space.
const SOCKET_BYTES: usize = 128 << 10;
