//! Control commands between nodes through Redis: they reach every node, or the call fails.
//! In: calls of the server API on one node, a Redis that hangs, dies and comes back → out: what the shards of both nodes get.
//! Uses nodes with an inbox instead of shards, a real process. Never: sleeps; it waits for what must happen.
//! A new promise about control commands of several nodes is a test here; their execution is tested in the crate `node`.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use fanwire_broker::Answer;
use fanwire_node::{
    ConnectionSelector, Inbox, Node, NodeParts, Notice, Options, Renewal, ServerSubscription,
};
use fanwire_protocol::{Disconnect, ErrorCode};
use fanwire_redis::{Redis, RedisOptions};
use fanwire_testing::wait_for;
use tokio::runtime::Runtime;

use crate::node::{WAIT_MAX, runtime};
use crate::server::RedisServer;

/// A node with one shard, which does nothing.
pub(crate) struct Member {
    pub(crate) node: Arc<Node>,
    pub(crate) notices: Receiver<Notice>,
    _runtime: Runtime,
}

struct RecordingInbox(Sender<Notice>);

impl Inbox for RecordingInbox {
    fn push(&self, notice: Notice) {
        let _ = self.0.send(notice);
    }
}

impl Member {
    pub(crate) fn start(server: RedisOptions) -> Self {
        Self::with_options(server, Options::default())
    }

    pub(crate) fn with_options(server: RedisOptions, node_options: Options) -> Self {
        let connect_timeout = Duration::from_secs(1);
        let io_timeout = Duration::from_secs(1);
        let options = RedisOptions { connect_timeout, io_timeout, ..server };
        let runtime = runtime();
        let redis = Arc::new(Redis::start(&options, runtime.handle()));
        let broker = Arc::clone(&redis);
        let parts = NodeParts {
            presence: Some(Arc::clone(&redis) as _),
            revocations: Some(Arc::clone(&redis) as _),
            user_statuses: Some(Arc::clone(&redis) as _),
            ..NodeParts::with_broker(move |receiver| {
                broker.deliver_to(receiver);
                broker
            })
        };
        let node = Node::with_parts(node_options, Instant::now(), 0, parts);
        let node = node.expect("valid options");
        let (sender, notices) = channel();
        node.attach(Arc::new(RecordingInbox(sender)));
        node.cluster().join(Arc::clone(&redis) as _);
        let listener = Arc::downgrade(&node);
        runtime.block_on(redis.subscribe_to_nodes(node.uid(), move |message| {
            listener.upgrade().is_none_or(|node| node.handle_message(message, Instant::now()))
        }));
        node.introduce(Instant::now());
        Self { node, notices, _runtime: runtime }
    }

    fn wait_for_nodes(&self, count: usize) {
        wait_for(|| self.node.nodes(Instant::now()).len() >= count, WAIT_MAX);
    }

    fn disconnect(&self, code: u16) -> Result<(), ErrorCode> {
        let disconnect = Disconnect { code, reason: "bye".into() };
        let answer = self.node.connections().disconnect(ConnectionSelector::default(), disconnect);
        let mut pending = Some(answer);
        let attempt = || {
            self.node.tick(Instant::now()); // sends control commands again
            let answer = pending.take().expect("no result yet").ready();
            answer.map_err(|later| {
                pending = Some(later);
                "an answer"
            })
        };
        wait_for(attempt, WAIT_MAX)
    }

    /// The codes of the disconnects until now.
    fn closed_with(&self) -> Vec<u16> {
        let code = |notice| match notice {
            Notice::Disconnect { disconnect, .. } => Some(disconnect.code),
            _ => None,
        };
        self.notices.try_iter().filter_map(code).collect()
    }

    /// The results of all calls that concern other nodes.
    fn call_everything(&self) -> Vec<Result<(), ErrorCode>> {
        let node = &self.node;
        let to_all = ConnectionSelector::default;
        let now = Instant::now();
        let extra = ServerSubscription { channel: "extra".into(), ..Default::default() };
        let renewal = Renewal { expire_at: None, info: "{}".into() };
        let bye = Disconnect { code: 4_000, reason: "bye".into() };
        let calls = [
            node.connections().subscribe(to_all(), extra, now),
            node.connections().unsubscribe(to_all(), Some("news")),
            node.connections().refresh(to_all(), renewal),
            node.connections().disconnect(to_all(), bye),
            node.list_channels("", now).map(|found| found.map(drop)),
        ];
        calls.into_iter().map(Answer::wait).collect()
    }
}

#[test]
fn a_status_is_that_of_every_node_and_outlives_all() {
    let server = RedisServer::start(&[]);
    let users = ["42".to_owned(), "43".to_owned()];
    let states = |member: &Member| {
        let statuses = member.node.user_statuses(users.to_vec(), Instant::now()).wait();
        let states = statuses.expect("all nodes answer").found.into_iter();
        states.map(|status| status.state.into_string()).collect::<Vec<_>>()
    };
    let nodes = [Member::start(server.options()), Member::start(server.options())];
    nodes.iter().for_each(|node| node.wait_for_nodes(2));
    let busy = Some("busy".to_owned());
    let updated =
        nodes[0].node.users().update_status(&users[..1], busy, nodes[0].node.unix(Instant::now()));
    assert_eq!(updated.wait(), Ok(()));
    nodes.iter().for_each(|node| assert_eq!(states(node), ["busy", ""]));
    drop(nodes);
    let left = server.ask("PTTL fanwire.status.{:42}");
    let left: u64 = left[1..].trim().parse().expect("a key that ends");
    assert!((1..=30 * 24 * 3_600_000).contains(&left), "{left} ms");
    let later = Member::start(server.options());
    assert_eq!(states(&later), ["busy", ""]);
    assert_eq!(later.node.users().delete_status(&users).wait(), Ok(()));
    assert_eq!(states(&later), ["", ""]);
}

#[test]
fn a_control_command_reaches_the_other_node_or_fails_in_bounded_time() {
    let mut server = RedisServer::start(&[]);
    let nodes = [Member::start(server.options()), Member::start(server.options())];
    nodes.iter().for_each(|node| node.wait_for_nodes(2));
    let [here, there] = &nodes;
    assert_eq!(here.disconnect(4_000), Ok(()));
    assert_eq!(here.node.list_channels("", Instant::now()).wait(), Ok([].into()), "both answered");
    assert_eq!(there.closed_with(), [4_000], "which was before");
    assert_eq!(here.closed_with(), [4_000]);
    server.signal("-STOP");
    for fault in ["it hangs", "it is dead"] {
        if fault == "it is dead" {
            server.kill();
        }
        assert_eq!(here.call_everything(), [Err(ErrorCode::INTERNAL); 5], "{fault}");
        assert_eq!(here.closed_with(), [4_000], "{fault}: they are obeyed here");
    }
    server.restart();
    wait_for(|| here.disconnect(4_001), WAIT_MAX);
    // Redis may have taken the command before it registered the subscription of the other node.
    wait_for(|| there.closed_with().contains(&4_001), WAIT_MAX);
    assert_eq!(here.node.nodes(Instant::now()).len(), 2, "no node was dropped");
}
