//! Order under real threads: publications of a channel reach every inbox in one order.
//! In: several threads that publish at once → out: what lies in the inboxes, compared.
//! Uses: `Node` from threads, hubs of one thread. Never: timing; every interleaving must pass.
//! Changed here: promises about concurrent publishers.

use std::collections::BTreeMap;

use fanwire_broker::PublishOptions;
use fanwire_node::Notice;
use fanwire_protocol::Publication;

use crate::script::hello;
use crate::world::{World, options};

const CHANNELS: [&str; 3] = ["a", "b", "c"];
const THREADS: usize = 4;
const PUBLICATIONS: usize = 300;

#[test]
fn publications_of_a_channel_reach_every_inbox_in_one_order() {
    let mut world = World::with_shards(options(|_| {}), 3);
    for name in ["ada", "bob", "eve"] {
        world.connected(name, hello(""));
        for channel in CHANNELS {
            world.say(name, &format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#));
        }
    }
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let node = &world.node;
            let now = world.now;
            scope.spawn(move || {
                for number in 0..PUBLICATIONS {
                    let data = format!("[{thread},{number}]").into();
                    let publication = Publication { data, ..Publication::default() };
                    let channel = CHANNELS[(number + thread) % CHANNELS.len()];
                    let published = node.channels().publish(
                        channel,
                        publication,
                        PublishOptions::default(),
                        now,
                    );
                    published.wait().expect("published");
                }
            });
        }
    });
    let orders: Vec<_> = world.shards.iter().map(|shard| order(shard.mailbox.take())).collect();
    assert_eq!(orders[0], orders[1]);
    assert_eq!(orders[0], orders[2]);
    let count: usize = orders[0].values().map(Vec::len).sum();
    assert_eq!(count, THREADS * PUBLICATIONS);
    for numbers in orders[0].values() {
        for thread in 0..THREADS {
            let own: Vec<_> = numbers.iter().filter(|(by, _)| *by == thread).collect();
            assert!(own.is_sorted(), "publications of one thread keep their order");
        }
    }
}

/// Returns, by channel, (thread, number) in the order of arrival.
fn order(notices: Vec<Notice>) -> BTreeMap<String, Vec<(usize, usize)>> {
    let mut order: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for notice in notices {
        let Notice::Broadcast(broadcast) = notice else { panic!("only broadcasts") };
        let data = serde_json::from_slice(&broadcast.publication().data).expect("a pair");
        order.entry(broadcast.channel().to_string()).or_default().push(data);
    }
    order
}
