//! A server of one shard whose turns a test runs on its own thread.
//! In: a node, clients with their first messages → out: its turn, the counters of its hub, the peers of its sockets.
//! Uses Fanwire's application and real sockets; never a thread, a handshake or HTTP.
//! Changed here: the environment of the turn. Expectations live in the tests.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use fanwire_node::{Hello, HubCounters, Node};
use fanwire_protocol::{Disconnect, Encoding};
use fanwire_shard::testing::TestShard;
use fanwire_shard::{Budget, ShardSettings};

use crate::compression::{ContextSettings, Contexts, Policies};
use crate::realtime::{EncodeWorker, Realtime, ShardInbox};

/// One shard of a server, on the thread of the test.
pub(super) struct Server {
    pub(super) node: Arc<Node>,
    pub(super) shard: TestShard<Realtime>,
    pub(super) counters: Arc<HubCounters>,
    pub(super) peers: Vec<TcpStream>,
}

impl Server {
    pub(super) fn of(node: Arc<Node>) -> Self {
        let settings = ShardSettings {
            slow_close: (Disconnect::SLOW.code, "slow"),
            ..ShardSettings::default()
        };
        let mut counters = None;
        let shard = TestShard::new(settings, |inbox| {
            let shard = node.attach(Arc::new(ShardInbox(inbox)));
            let contexts = Arc::new(Contexts::new(ContextSettings {
                policies: Policies::new(&node.options().channel),
                level: 6,
                min_bytes: 128,
                gaps_max: 4,
                memory: Budget::new(1 << 20),
            }));
            node.prepare_with(contexts.clone());
            let realtime = Realtime::new(node.clone(), shard, contexts, EncodeWorker::default());
            counters = Some(realtime.counters());
            realtime
        });
        let counters = counters.expect("the application was made");
        Self { node, shard, counters, peers: Vec::new() }
    }

    /// Opens a client with this first message.
    pub(super) fn open(&mut self, user: Option<String>, commands: &str) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let peer = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (socket, _) = listener.accept().expect("it has come");
        let mut frame = match u16::try_from(commands.len()).expect("a small message") {
            bytes @ 0..126 => vec![0x81, 0x80 | bytes as u8],
            bytes => [[0x81, 0x80 | 126], bytes.to_be_bytes()].concat(),
        };
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(commands.as_bytes());
        let hello =
            Hello { encoding: Encoding::Json, frame_ping: false, transport: "websocket", user };
        self.shard.open(socket, frame, hello);
        self.peers.push(peer);
        self.take_turn();
    }

    pub(super) fn take_turn(&mut self) {
        self.shard.turn();
    }
}
