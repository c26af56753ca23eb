//! A takeover: two programs with the same Redis change places at one message of each PUB/SUB connection.
//! In: a mark, the channels of the old program → out: connections of both that stand still at the mark, and run on behind it.
//! Uses: the order of a Redis, which sends what is published to all connections in the same order. Never: the other program.
//! Changed here: the order of the steps. What passes on a connection is `pubsub_connection/gate.rs`.

use std::sync::mpsc::channel;
use std::time::Instant;

use super::Redis;
use super::pubsub_connection::{Mark, PubSubConnection};
use super::server::Server;
use super::store::Store;
use super::wire::RedisCommand;

/// A point in the messages of all Redis of an engine.
pub struct TakeoverMark(Mark);

impl Redis {
    /// Whether another program can take over. In a Cluster a name may be on two connections for a while.
    pub fn can_be_taken_over(&self) -> bool {
        self.stores.iter().all(|store| matches!(store, Store::Single(_)))
    }

    /// Drops all messages up to a mark but changes of blocks and revocations. For a new program, before it subscribes to anything.
    pub fn drop_until_mark(&self) {
        self.standalone_pubsubs().for_each(PubSubConnection::drop_until_mark);
    }

    /// A mark with this value for the node `uid`.
    pub fn takeover_mark(&self, uid: &str, value: &str) -> TakeoverMark {
        TakeoverMark(Mark { name: self.keys.takeover_mark(uid), value: value.to_owned() })
    }

    /// Subscribes to these channels, and stops at the mark when it comes. Returns whether each Redis has confirmed the subscriptions in
    /// time. Blocks.
    pub fn stop_at(&self, TakeoverMark(mark): &TakeoverMark, channels: &[String]) -> bool {
        let (sender, confirmed) = channel();
        let when_subscribed = |pubsub: &PubSubConnection, name: &str| {
            let sender = sender.clone();
            // Who has given up does not wait for the others.
            pubsub.when_subscribed(name, move |result| {
                let _ = sender.send(result.is_ok());
            });
        };
        for pubsub in self.standalone_pubsubs() {
            pubsub.stop_at(mark);
            when_subscribed(pubsub, &mark.name);
        }
        for channel in channels {
            let (pubsub, name) = self.pubsub_connection(channel);
            pubsub.subscribe(&name);
            when_subscribed(&pubsub, &name);
        }
        drop(sender);
        confirmed.iter().all(|is_subscribed| is_subscribed)
    }

    /// Publishes the mark, when both programs are to stop at it.
    pub fn publish_mark(&self, TakeoverMark(mark): &TakeoverMark) {
        for server in self.standalone_servers() {
            let parts = [b"PUBLISH", mark.name.as_bytes(), mark.value.as_bytes()];
            server.command_connections[0].send(RedisCommand::of(&parts), drop);
        }
    }

    /// Waits until all connections have got the mark. Returns whether they have. Blocks.
    pub fn wait_for_mark(&self, deadline: Instant) -> bool {
        self.standalone_pubsubs().all(|pubsub| pubsub.wait_for_mark(deadline))
    }

    /// Delivers what was published behind the mark, if it has come, and all that follows.
    pub fn run_on(&self) {
        self.standalone_pubsubs().for_each(PubSubConnection::run_on);
    }

    fn standalone_pubsubs(&self) -> impl Iterator<Item = &PubSubConnection> {
        self.standalone_servers().flat_map(|server| &server.pubsub_connections)
    }

    fn standalone_servers(&self) -> impl Iterator<Item = &Server> {
        self.stores.iter().filter_map(|store| match store {
            Store::Single(server) => Some(&**server),
            Store::Cluster(_) => None,
        })
    }
}
