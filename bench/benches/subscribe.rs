//! Criterion benches of entering a channel: plainly, with a position, with publications that were missed.
//! In: one connected client, a channel with ten stored publications → out: time per subscribe and unsubscribe.
//! Uses the node without sockets; its outbox only counts bytes.
//! Changed here: what a subscriber asks for; fan-out is measured by the scenarios of `fanwire-bench`.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fanwire_broker::PublishOptions;
use fanwire_node::options::Namespace;
use fanwire_node::{
    Broadcast, CommandSource, ConnectionInfo, ConnectionKey, DeltaMode, Hub, Inbox, Node, Notice,
    Options, Outbox, SubscriptionIndex,
};
use fanwire_protocol::{Disconnect, Encoding, Publication, encode_publication};

/// A trade tick.
const BYTES: usize = 270;
const STORED: u64 = 10;
const KEY: ConnectionKey = ConnectionKey { index: 0, generation: 1 };

/// A shard without publications while it is timed.
struct Quiet;

impl Inbox for Quiet {
    fn push(&self, _notice: Notice) {}
}

/// An outbox that counts the bytes of replies.
#[derive(Default)]
struct Count(u64);

impl Outbox for Count {
    fn send(&mut self, _connection: ConnectionKey, message: &[u8]) {
        self.0 += message.len() as u64;
    }

    fn deliver(
        &mut self,
        _connection: u32,
        _: SubscriptionIndex,
        _: &Arc<Broadcast>,
        _: DeltaMode,
    ) {
    }

    fn ping(&mut self, _connection: ConnectionKey) {}

    fn disconnect(&mut self, _connection: ConnectionKey, disconnect: &Disconnect) {
        panic!("{disconnect:?}");
    }
}

fn namespace(name: &str, history: bool) -> Namespace {
    let mut namespace = Namespace { name: name.into(), ..Namespace::default() };
    if history {
        namespace.history_size = STORED as usize;
        namespace.history_ttl = Duration::from_secs(3600);
        namespace.force_recovery = true;
    }
    namespace
}

fn publication(number: u64) -> Publication {
    let data = format!("\"{number:0width$}\"", width = BYTES - 2);
    Publication { data: data.into(), offset: number + 1, ..Publication::default() }
}

/// A hub with one connected client.
fn hub(now: Instant, out: &mut Count) -> Hub {
    let mut options = Options::default();
    options.client.insecure = true;
    options.channel.namespaces = vec![namespace("plain", false), namespace("kept", true)];
    let node = Node::starting_at(options, now, 0).expect("the options are good");
    for number in 0..STORED {
        let publication = publication(number);
        let published =
            node.channels().publish("kept:a", publication, PublishOptions::default(), now);
        published.wait().expect("the memory broker never fails");
    }
    let shard = node.attach(Arc::new(Quiet));
    let mut hub = Hub::new(node, shard);
    let encoding = Encoding::Json;
    let info = ConnectionInfo {
        encoding,
        frame_ping: true,
        transport: "websocket",
        command_source: CommandSource::Connection,
        user: None,
        last_event_id: None,
        headers: Vec::new(),
    };
    hub.open(KEY, info, now);
    hub.receive(KEY, br#"{"id":1,"connect":{}}"#, now, out);
    hub
}

fn subscribe(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("subscribe");
    let rows = [
        ("plain", "plain:a", ""),
        ("position", "kept:a", ""),
        ("recover 0", "kept:a", r#","recover":true,"offset":10"#),
        ("recover 1", "kept:a", r#","recover":true,"offset":9"#),
        ("recover 10", "kept:a", r#","recover":true"#),
    ];
    let now = Instant::now();
    for (name, channel, options) in rows {
        let subscribe = format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"{options}}}}}"#);
        let unsubscribe = format!(r#"{{"id":3,"unsubscribe":{{"channel":"{channel}"}}}}"#);
        let mut out = Count::default();
        let mut hub = hub(now, &mut out);
        out.0 = 0;
        hub.receive(KEY, subscribe.as_bytes(), now, &mut out);
        hub.receive(KEY, unsubscribe.as_bytes(), now, &mut out);
        group.throughput(Throughput::Bytes(out.0));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                hub.receive(KEY, subscribe.as_bytes(), now, &mut out);
                hub.receive(KEY, unsubscribe.as_bytes(), now, &mut out);
            });
        });
    }
    // What the bytes of ten publications cost anybody: the yardstick of "recover 10".
    let publications: Vec<_> = (0..STORED).map(publication).collect();
    group.bench_function("10 pushes", |bencher| {
        bencher.iter(|| {
            for publication in &publications {
                black_box(encode_publication(Encoding::Json, "kept:a", black_box(publication)));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, subscribe);
criterion_main!(benches);
