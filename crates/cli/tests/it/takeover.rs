//! Upgrades of a server that delivers: its clients notice nothing.
//! In: WebSockets of every kind and event streams, publications over the server API, `fanwire upgrade` → out: each publication once, in
//! order, on the connections of before.
//! Uses the binary, `fanwire_client`, stock zlib. Never: a wait without a limit.
//! Changed here: what a client may be. `FANWIRE_TAKEOVER_CLIENTS=18500` and `FANWIRE_TAKEOVER_STREAMS=500` make many of them,
//! `FANWIRE_TAKEOVER_RATE` sets the publications per second, `FANWIRE_TAKEOVER_CHANNELS` the channels.

mod faults;
mod publisher;
mod world;

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use fanwire_testing::{free_port, wait_for};

use self::world::{PATIENCE, World, number};
use crate::started::process::{Redis, no_redis};

#[test]
fn clients_notice_nothing_of_ten_upgrades() {
    upgrade_again_and_again(&mut World::start("upgrades", &[]), 10);
}

/// The publisher asks another node, so that all publications come from Redis.
#[test]
fn clients_notice_nothing_of_upgrades_with_redis() {
    let Some(redis) = Redis::start(&["--save", ""]) else { return no_redis("upgrades with Redis") };
    upgrade_beside_another_node("redis-upgrades", &with_redis(&redis));
}

/// The connections to Redis do not move: each program has its own.
#[test]
fn clients_notice_nothing_of_upgrades_with_redis_over_tls() {
    let port = free_port().to_string();
    let key = |file: &str| format!("{}/../../tests/keys/{file}", env!("CARGO_MANIFEST_DIR"));
    let certificate = key("localhost.pem");
    let private = key("localhost.private.pem");
    let authority = key("ca.pem");
    let tls = ["--tls-port", &port, "--tls-auth-clients", "no", "--tls-ca-cert-file", &authority];
    let own = ["--save", "", "--tls-cert-file", &certificate, "--tls-key-file", &private];
    let Some(_redis) = Redis::start(&[tls, own].concat()) else {
        return no_redis("upgrades with Redis over TLS");
    };
    let options = [
        "--engine.type=redis".to_owned(),
        format!("--engine.redis.address=127.0.0.1:{port}"),
        "--engine.redis.tls.enabled=true".to_owned(),
        format!("--engine.redis.tls.server_ca_pem={authority}"),
        "--durable_streams.enabled=false".to_owned(),
    ];
    upgrade_beside_another_node("tls-upgrades", &options);
}

fn upgrade_beside_another_node(name: &str, options: &[String]) {
    let flags: Vec<&str> = options.iter().map(String::as_str).collect();
    let other = World::start(&format!("{name}-other"), &flags);
    let mut world = World::start(name, &flags);
    let nodes = || world.request("POST /api/info", "", "{}").matches(r#""uid""#).count();
    wait_for(|| nodes() == 2, PATIENCE);
    world.publish_at(&other);
    upgrade_again_and_again(&mut world, 5);
    let answer = world.request("POST /api/info", "", "{}");
    assert_eq!(answer.matches(r#""uid""#).count(), 2, "it knows the other node at once: {answer}");
}

fn upgrade_again_and_again(world: &mut World, times: usize) {
    world.connect(number("CLIENTS", 48), number("STREAMS", 6));
    world.publish_for(Duration::from_millis(300));
    println!("before: {}", world.take_delays());
    let mut pids = vec![world.pid()];
    for _ in 0..times {
        let answer = world.while_publishing(|server| server.upgrade(&[])).expect("it is upgraded");
        assert!(answer.contains("serves now, with"), "{answer}");
        println!("while it was upgraded: {}", world.take_delays());
        let pid = wait_for(|| world.pid_other_than(&pids), PATIENCE);
        pids.push(pid);
    }
    world.publish_for(Duration::from_millis(300));
    world.check_everything_arrived();
}

/// Options of a server with this Redis.
fn with_redis(redis: &Redis) -> [String; 3] {
    [
        "--engine.type=redis".to_owned(),
        format!("--engine.redis.address=127.0.0.1:{}", redis.port),
        "--durable_streams.enabled=false".to_owned(),
    ]
}

#[test]
fn a_check_counts_connections_and_changes_nothing() {
    let mut world = World::start("check", &[]);
    world.connect(5, 1);
    let answer = world.server().upgrade(&["--check"]).expect("an answer");
    assert!(answer.starts_with("6 connections would move; 0 would be closed"), "{answer}");
    let pid = world.pid();
    let by_pid = world.server().upgrade(&["--check", "--pid", &pid.to_string()]);
    assert_eq!(by_pid, Ok(answer));
    let other = world.server().upgrade(&["--check", "--pid", &std::process::id().to_string()]);
    assert!(other.is_err_and(|reason| reason.contains(&format!("is process {pid}"))));
    assert_eq!(world.pid(), pid);
    world.publish_for(Duration::from_millis(100));
    world.check_everything_arrived();
}

#[test]
fn connections_that_move_count_for_their_address() {
    let mut world = World::start("addresses", &["--client.limits.address_connections.limit=4"]);
    world.connect(3, 1);
    world.server().upgrade(&[]).expect("it is upgraded");
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let refused = world.request("GET /connection/websocket", upgrade, "");
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
}

#[test]
fn a_service_manager_learns_the_process_that_serves() {
    let name = format!("fanwire-takeover-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a short name");
    let manager = UnixDatagram::bind_addr(&address).expect("a new socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
    let world = World::start_with("manager", &[], &[("NOTIFY_SOCKET", &format!("@{name}"))]);
    let before = world.pid();
    world.server().upgrade(&[]).expect("it is upgraded");
    let pid = wait_for(|| world.pid_other_than(&[before]), PATIENCE);
    let receive = |_| {
        let mut message = [0; 64];
        let length = manager.recv(&mut message).expect("a datagram");
        String::from_utf8(message[..length].to_vec()).expect("text")
    };
    let mut messages: Vec<String> = (0..3).map(receive).collect();
    // Both processes say that they are ready.
    messages.sort();
    assert_eq!(messages, [format!("MAINPID={pid}").as_str(), "READY=1", "READY=1"]);
}

#[test]
fn durable_streams_go_on_with_their_producers() {
    let world = World::start("durable", &[]);
    let json = "Content-Type: application/json\r\n";
    let producer =
        |seq| format!("{json}Producer-Id: p\r\nProducer-Epoch: 0\r\nProducer-Seq: {seq}\r\n");
    let created = world.request("PUT /v1/stream/a", json, "");
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    let first = world.request("POST /v1/stream/a", &producer(0), "[1]");
    assert!(first.starts_with("HTTP/1.1 200"), "{first}");
    world.server().upgrade(&[]).expect("it is upgraded");
    let again = world.request("POST /v1/stream/a", &producer(0), "[1]");
    assert!(again.starts_with("HTTP/1.1 204"), "it is known: {again}");
    let next = world.request("POST /v1/stream/a", &producer(1), "[2]");
    assert!(next.starts_with("HTTP/1.1 200"), "{next}");
    let read = world.request("GET /v1/stream/a?offset=-1", "", "");
    assert!(read.contains("content-type: application/json") && read.ends_with("[1,2]"), "{read}");
}
