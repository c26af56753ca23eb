//! Receipts of publications over real sockets: at once, after a wait, replaced, dropped; stalls in the flight recorder.
//! In: clients that read and one that does not, publications with receipts → out: asserted counts.
//! Uses turns on the test's own thread. Never: a thread, HTTP.
//! Changed here: what a receipt says. Its arithmetic is tested in `receipt.rs` of `cluster`.

use std::io::Read as _;
use std::time::{Duration, Instant};

use fanwire_broker::{DeliveryClass, PublishOptions};
use fanwire_node::Options;
use fanwire_node::questions::{ConnectionLogQuery, ConnectionLogQuestion, ReportQuestion};
use fanwire_protocol::Publication;
use fanwire_shard::Compression;

use super::server::Server;

/// A server with clients of one channel that all have this compression.
fn server(clients: usize, compression: Compression) -> Server {
    let mut options = Options::default();
    options.client.insecure = true;
    let mut server = Server::of(options);
    let commands = "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"news\"}}";
    for _ in 0..clients {
        server.open_with(compression, Some("42".into()), commands);
    }
    server
}

/// Publishes, takes a turn, and returns the number of the receipt.
fn publish(server: &mut Server, bytes: usize, delivery: Option<DeliveryClass>) -> u64 {
    let now = Instant::now();
    let receipt = server.node.diagnostics().begin_receipt(now);
    let data = format!("\"{}\"", "x".repeat(bytes));
    let publication = Publication { data: data.into(), ..Publication::default() };
    let options = PublishOptions { receipt, delivery, ..PublishOptions::default() };
    let published = server.node.channels().publish("news", publication, options, now);
    published.wait().expect("accepted");
    server.shard.turn_with_events(Duration::ZERO);
    receipt
}

/// Subscribers, at once, waited, replaced, dropped.
fn counts(server: &Server, receipt: u64) -> [u32; 5] {
    let answers = server.node.ask(ReportQuestion { receipt }, Instant::now()).wait();
    let record = answers.expect("the node answers").found.nodes[0].receipt.expect("it is kept");
    let taken = record.at_once + record.waited;
    assert_eq!(
        record.all_us.is_some(),
        taken > 0 && taken + record.replaced + record.dropped == record.subscribers
    );
    [record.subscribers, record.at_once, record.waited, record.replaced, record.dropped]
}

/// Publishes until the sockets take no more. Returns the first receipt that waits.
fn block(server: &mut Server, delivery: Option<DeliveryClass>) -> u64 {
    loop {
        let receipt = publish(server, 30_000, delivery);
        let [subscribers, at_once, ..] = counts(server, receipt);
        if at_once < subscribers {
            return receipt;
        }
    }
}

/// Reads everything that the server has for a client.
fn read_all(server: &mut Server, client: usize) {
    server.peers[client].set_nonblocking(true).expect("a socket");
    let mut buffer = vec![0; 1 << 20];
    loop {
        let has_read = server.peers[client].read(&mut buffer).is_ok_and(|bytes| bytes > 0);
        if !has_read && !server.shard.is_busy() {
            return;
        }
        server.shard.turn_with_events(Duration::from_millis(50));
    }
}

#[test]
fn a_publication_for_readers_is_taken_at_once() {
    for compression in [
        Compression::Raw,
        Compression::Context { window_bits: 15 },
        Compression::Dedicated { window_bits: 15 },
    ] {
        let mut server = server(300, compression);
        for bytes in [10, 1000] {
            let receipt = publish(&mut server, bytes, None);
            assert_eq!(counts(&server, receipt), [300, 300, 0, 0, 0], "{compression:?}");
        }
    }
}

#[test]
fn a_client_that_does_not_read_lets_it_wait_and_has_a_stall_in_its_log() {
    let mut server = server(1, Compression::Raw);
    let first = block(&mut server, None);
    let second = publish(&mut server, 10, None);
    assert_eq!(counts(&server, first), [1, 0, 0, 0, 0]);
    assert_eq!(counts(&server, second), [1, 0, 0, 0, 0]);
    read_all(&mut server, 0);
    assert_eq!(counts(&server, first), [1, 0, 1, 0, 0]);
    assert_eq!(counts(&server, second), [1, 0, 1, 0, 0]);

    let query = ConnectionLogQuery { user: Some("42".into()), limit: 1, ..Default::default() };
    let answer = server.node.ask(ConnectionLogQuestion::from(query), Instant::now());
    server.take_turn();
    let logs = &answer.wait().expect("the shard has answered").found.nodes[0].logs;
    assert!(logs[0].address.starts_with("127."), "{logs:?}");
    let stall = logs[0].events.iter().find(|event| event.name == "stall").expect("it stalled");
    assert!((10..400_000).contains(&stall.second), "{stall:?}");
}

#[test]
fn a_newer_state_takes_the_place_of_one_that_waits() {
    let mut server = server(1, Compression::Raw);
    let latest = Some(DeliveryClass::Latest);
    block(&mut server, latest);
    let replaced = publish(&mut server, 10, latest);
    let newest = publish(&mut server, 10, latest);
    assert_eq!(counts(&server, replaced), [1, 0, 0, 1, 0]);
    read_all(&mut server, 0);
    assert_eq!(counts(&server, newest), [1, 0, 1, 0, 0]);
}

#[test]
fn the_end_of_a_connection_is_counted() {
    let mut server = server(2, Compression::Raw);
    let waiting = block(&mut server, None);
    server.peers.clear();
    while server.node.counts().connections > 0 {
        server.shard.turn_with_events(Duration::from_millis(50));
    }
    let [subscribers, at_once, waited, _, dropped] = counts(&server, waiting);
    assert_eq!((subscribers, at_once + waited + dropped), (2, 2));
    assert!(dropped > 0);
    let none = publish(&mut server, 10, None);
    assert_eq!(counts(&server, none), [0; 5]);
}
