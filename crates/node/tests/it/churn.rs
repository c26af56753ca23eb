//! Subscribers that come and go on shards with threads of their own while others publish: nothing is lost or doubled.
//! In: publishing threads and hub threads at once → out: each subscriber's publications, counted without a hole.
//! Uses: `Node` and hubs from real threads. Never: timing; every interleaving must pass.
//! Changed here: promises about recovery under concurrency. Rules are compared with a model in `streams.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fanwire_broker::PublishOptions;
use fanwire_node::{ConnectionKey, Node};
use fanwire_protocol::{Encoding, Publication, Reply, SubscribeResult};
use fanwire_testing::yield_to_others;

use crate::history::with_history;
use crate::script::hello;
use crate::world::{Effect, Record, Shard};

const SHARDS: usize = 2;
const CLIENTS: usize = 20;
const PUBLISHERS: usize = 2;
const PUBLICATIONS: usize = 1_000;

/// A client that checks what it receives, as an SDK keeps its position.
#[derive(Default)]
struct Client {
    subscribed: bool,
    epoch: String,
    offset: u64,
    recoveries: usize,
}

impl Client {
    fn receive(&mut self, effect: &Effect) {
        let reply = match effect {
            Effect::Message(message) => reply(message),
            Effect::Publication(one, _) => reply(one.message(Encoding::Json).expect("JSON")),
            Effect::PingFrame | Effect::Disconnect(_) => panic!("nobody asked for this"),
        };
        assert_eq!(reply.error, None);
        if let Some(result) = reply.subscribe {
            self.enter(result);
        }
        if let Some(push) = reply.push {
            assert_eq!(push.unsubscribe, None, "no position was lost");
            self.next(&push.r#pub.expect("a publication"));
        }
    }

    fn enter(&mut self, result: SubscribeResult) {
        self.subscribed = true;
        if !result.was_recovering {
            (self.epoch, self.offset) = (result.epoch, result.offset);
            return;
        }
        assert!(result.recovered && result.epoch == self.epoch && result.offset == self.offset);
        self.recoveries += 1;
        result.publications.iter().for_each(|publication| self.next(publication));
    }

    fn next(&mut self, publication: &Publication) {
        assert!(self.subscribed, "after unsubscribing nothing is heard");
        assert_eq!(publication.offset, self.offset + 1, "no hole, nothing twice");
        self.offset += 1;
    }
}

fn reply(message: &[u8]) -> Reply {
    serde_json::from_slice(message).expect("a JSON reply")
}

fn key(index: usize) -> ConnectionKey {
    ConnectionKey { index: index as u32, generation: 1 }
}

struct Population {
    shard: Shard,
    clients: Vec<Client>,
    now: Instant,
}

impl Population {
    fn new(mut shard: Shard, now: Instant) -> Self {
        for index in 0..CLIENTS {
            shard.hub.open(key(index), hello(""), now);
            let connect = br#"{"id":1,"connect":{}}"#;
            shard.hub.receive(key(index), connect, now, &mut Record::default());
        }
        Self { shard, clients: (0..CLIENTS).map(|_| Client::default()).collect(), now }
    }

    /// Comes and goes until the publishers are done, and every client has come back once, which fast publishers would not
    /// wait for. Then subscribes all clients and takes the rest.
    fn live(&mut self, done: &AtomicBool) {
        for turn in 0.. {
            let was_done = done.load(Ordering::Acquire);
            self.drain();
            self.change(turn % CLIENTS);
            if was_done && turn >= 3 * CLIENTS {
                break;
            }
        }
        // The last one to come back may still wait for a large reply.
        self.drain();
        for index in 0..CLIENTS {
            if !self.clients[index].subscribed {
                self.change(index);
            }
        }
        self.drain();
    }

    fn drain(&mut self) {
        let mut record = Record::default();
        for notice in self.shard.mailbox.take() {
            self.shard.hub.notice(notice, self.now, &mut record);
        }
        self.receive(record);
    }

    /// A client subscribes if it is away, and else leaves.
    fn change(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let command = if client.subscribed {
            client.subscribed = false;
            r#"{"id":2,"unsubscribe":{"channel":"news"}}"#.to_owned()
        } else {
            let recover = !client.epoch.is_empty();
            let offset = client.offset;
            let epoch = &client.epoch;
            format!(
                r#"{{"id":2,"subscribe":{{"channel":"news","recover":{recover},"offset":{offset},"epoch":"{epoch}"}}}}"#
            )
        };
        let mut record = Record::default();
        self.shard.hub.receive(key(index), command.as_bytes(), self.now, &mut record);
        self.receive(record);
    }

    fn receive(&mut self, record: Record) {
        for (index, effect) in record.effects {
            self.clients[index as usize].receive(&effect);
        }
    }
}

#[test]
fn recovering_clients_lose_nothing_and_hear_nothing_twice_under_churn() {
    let now = Instant::now();
    let mut options = with_history(|open| {
        open.force_recovery = true;
        open.history_size = PUBLISHERS * PUBLICATIONS;
    });
    options.client.recovery_max_publication_limit = 0;
    let node = Node::starting_at(options, now, 1_000_000).expect("the options are good");
    let mut crowds = [(); SHARDS].map(|()| Population::new(Shard::new(&node), now));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads = crowds.each_mut().map(|population| scope.spawn(|| population.live(&done)));
        let publishers = [(); PUBLISHERS].map(|()| scope.spawn(|| publish(&node, now)));
        for publisher in publishers {
            publisher.join().expect("publishing never fails");
        }
        done.store(true, Ordering::Release);
        threads.into_iter().for_each(|thread| thread.join().expect("every client is right"));
    });
    let clients = crowds.iter().flat_map(|population| &population.clients);
    for client in clients.clone() {
        assert_eq!(client.offset, (PUBLISHERS * PUBLICATIONS) as u64, "everything, to the end");
    }
    assert!(clients.map(|client| client.recoveries).sum::<usize>() > 0);
}

fn publish(node: &Arc<Node>, now: Instant) {
    for number in 0..PUBLICATIONS {
        let data = number.to_string().into();
        let publication = Publication { data, ..Publication::default() };
        let published =
            node.channels().publish("news", publication, PublishOptions::default(), now);
        published.wait().expect("the broker is there");
        yield_to_others();
    }
}
