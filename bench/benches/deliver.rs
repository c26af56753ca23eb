//! Criterion benches of handing one publication to the subscribers of a channel on one shard.
//! In: a hub with 10,000 subscribers of one channel → out: time per publication, by how many of them have a filter or are left out.
//! Uses the node without sockets; its outbox only counts.
//! Change here what the subscribers are; frames and writes are measured by the scenarios of `fanwire-bench`.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex};
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fanwire_node::{
    Broadcast, ConnectionKey, DeltaMode, Hello, Hub, Inbox, Node, Notice, Options, Outbox, Uplink,
};
use fanwire_protocol::{Disconnect, Encoding};

const SUBSCRIBERS: u32 = 10_000;

/// A shard's letterbox, emptied by hand.
#[derive(Default)]
struct Letters(Mutex<Vec<Notice>>);

impl Inbox for Letters {
    fn push(&self, notice: Notice) {
        self.0.lock().expect("one thread").push(notice);
    }
}

/// An outbox that counts deliveries.
#[derive(Default)]
struct Count(u64);

impl Outbox for Count {
    fn send(&mut self, _connection: ConnectionKey, _message: &[u8]) {}

    fn deliver(&mut self, connection: u32, place: u32, _: &Arc<Broadcast>, _: DeltaMode) {
        self.0 += u64::from(connection ^ place);
    }

    fn ping(&mut self, _connection: ConnectionKey) {}

    fn disconnect(&mut self, _connection: ConnectionKey, disconnect: &Disconnect) {
        panic!("{disconnect:?}");
    }
}

/// A hub whose first `filtered` subscribers want what has the tag `k`, and a publication without it, which its client may not
/// get back.
fn hub(filtered: u32, excludes: bool, now: Instant) -> (Hub, Notice) {
    let mut options = Options::default();
    options.client.insecure = true;
    options.channel.without_namespace.allow_tags_filter = true;
    options.channel.without_namespace.exclude_publisher = excludes;
    let node = Node::starting_at(options, now, 0).expect("the options are good");
    let letters = Arc::new(Letters::default());
    let shard = node.attach(Arc::clone(&letters) as _);
    let mut hub = Hub::new(Arc::clone(&node), shard);
    let mut out = Count::default();
    for index in 0..SUBSCRIBERS {
        let key = ConnectionKey { index, generation: 1 };
        let encoding = Encoding::Json;
        let hello = Hello {
            encoding,
            frame_ping: true,
            transport: "websocket",
            uplink: Uplink::Connection,
            user: None,
        };
        hub.open(key, hello, now);
        hub.receive(key, br#"{"id":1,"connect":{}}"#, now, &mut out);
        let subscribe: &[u8] = match index < filtered {
            true => br#"{"id":2,"subscribe":{"channel":"a","tf":{"key":"k","cmp":"ex"}}}"#,
            false => br#"{"id":2,"subscribe":{"channel":"a"}}"#,
        };
        hub.receive(key, subscribe, now, &mut out);
    }
    let key = ConnectionKey { index: SUBSCRIBERS / 2, generation: 1 };
    hub.receive(key, br#"{"id":3,"publish":{"channel":"a","data":1}}"#, now, &mut out);
    let notice = letters.0.lock().expect("one thread").pop().expect("the publication");
    (hub, notice)
}

fn deliver(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("deliver");
    group.throughput(Throughput::Elements(SUBSCRIBERS.into()));
    let now = Instant::now();
    for (name, filtered, excludes) in [
        ("no filter", 0, false),
        ("one filter", 1, false),
        ("all filters", SUBSCRIBERS, false),
        ("publisher left out", 0, true),
    ] {
        let ((mut hub, notice), mut out) = (hub(filtered, excludes, now), Count::default());
        group.bench_function(name, |bencher| {
            bencher.iter(|| hub.notice(notice.clone(), now, &mut out));
        });
    }
    group.finish();
}

criterion_group!(benches, deliver);
criterion_main!(benches);
