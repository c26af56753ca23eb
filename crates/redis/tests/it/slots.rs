//! A Redis Cluster for one test: three masters, replicas of each, and migrations of slots between them.
//! In: the number of replicas of each master → out: seeds; the processes end with the value.
//! Uses `RedisServer` and CLUSTER commands. Never: redis-cli, sleeps; it polls the nodes.
//! Changed here: how a Cluster is built for tests and changed by them.

use std::time::{Duration, Instant};

use fanwire_redis::RedisOptions;
use fanwire_testing::{free_port, wait_for};

use crate::node::WAIT_MAX;
use crate::server::RedisServer;

/// A running Cluster. The first three nodes are the masters.
pub(crate) struct Slots {
    pub(crate) nodes: Vec<RedisServer>,
    ports: Vec<u16>,
}

const MASTERS: usize = 3;
const SLOTS: usize = 16_384;

impl Slots {
    /// Starts a Cluster with `replicas` replicas for each master.
    pub(crate) fn start(replicas: usize) -> Self {
        let nodes: Vec<_> = (0..MASTERS * (1 + replicas)).map(|_| node(&[])).collect();
        let ports = nodes.iter().map(|node| node.address().port).collect();
        Self::of(nodes, ports)
    }

    /// Makes a Cluster of empty nodes and their bus ports.
    pub(crate) fn of(nodes: Vec<RedisServer>, ports: Vec<u16>) -> Self {
        for (number, node) in nodes[..MASTERS].iter().enumerate() {
            let [first, last] = [number, number + 1].map(|edge| edge * SLOTS / MASTERS);
            ok(node, &format!("CLUSTER ADDSLOTSRANGE {first} {}", last - 1));
            ok(node, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1));
        }
        let slots = Self { nodes, ports };
        for node in &slots.nodes[1..] {
            let port = node.address().port;
            let bus = bus_of(node);
            ok(&slots.nodes[0], &format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
        }
        for node in &slots.nodes {
            let count = slots.nodes.len();
            let is_known = |text: &str| {
                text.matches(" connected").count() == count && !text.contains("handshake")
            };
            wait_for(|| is_known(&node.ask("CLUSTER NODES")), WAIT_MAX);
        }
        for (number, replica) in slots.nodes[MASTERS..].iter().enumerate() {
            let master = id(&slots.nodes[number % MASTERS]);
            ok(replica, &format!("CLUSTER REPLICATE {master}"));
            let is_linked = || replica.ask("INFO replication").contains("master_link_status:up");
            wait_for(is_linked, WAIT_MAX);
        }
        slots.wait_until_whole();
        slots
    }

    /// Waits until every running node reports a working Cluster.
    fn wait_until_whole(&self) {
        for node in &self.nodes {
            let is_ok = || node.ask("CLUSTER INFO").contains("cluster_state:ok");
            wait_for(is_ok, WAIT_MAX);
        }
    }

    pub(crate) fn options(&self) -> RedisOptions {
        let seeds = self.nodes[..2].iter().map(RedisServer::address).collect();
        RedisOptions { clusters: vec![seeds], ..RedisOptions::default() }
    }

    /// The number of the node that has the keys of a channel, and their slot.
    pub(crate) fn owner(&self, channel: &str) -> (usize, u16) {
        let answer = self.nodes[0].ask(&format!("CLUSTER KEYSLOT {{:{channel}}}"));
        let slot: u16 = answer[1..].trim().parse().expect("the number of a slot");
        (usize::from(slot) * MASTERS / SLOTS, slot)
    }

    /// Promotes a replica with the help of its master. Redis gives up after a timeout, so the command is repeated.
    pub(crate) fn promote(&self, replica: usize) {
        let node = &self.nodes[replica];
        let is_master = || node.ask("INFO replication").contains("role:master");
        for _ in 0..4 {
            ok(node, "CLUSTER FAILOVER");
            let asked = Instant::now();
            let has_ended = || is_master() || asked.elapsed() > Duration::from_secs(7);
            wait_for(has_ended, WAIT_MAX);
            if is_master() {
                return;
            }
        }
        panic!("the master does not hand over");
    }

    /// Migrates a slot as operators do, key by key.
    pub(crate) fn migrate(&self, slot: u16, from: usize, to: usize) {
        self.begin_to_migrate(slot, from, to);
        let [source, target] = [&self.nodes[from], &self.nodes[to]];
        for node in [target, source, &self.nodes[MASTERS - from - to]] {
            ok(node, &format!("CLUSTER SETSLOT {slot} NODE {}", id(target)));
        }
    }

    /// Migrates the keys of a slot, but not yet the slot.
    pub(crate) fn begin_to_migrate(&self, slot: u16, from: usize, to: usize) {
        let [source, target] = [&self.nodes[from], &self.nodes[to]];
        ok(target, &format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(source)));
        ok(source, &format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(target)));
        loop {
            let found = source.ask(&format!("CLUSTER GETKEYSINSLOT {slot} 1"));
            let Some(key) = found.lines().nth(2) else { break };
            let port = self.ports[to].to_string();
            let command =
                [b"MIGRATE", &b"127.0.0.1"[..], port.as_bytes(), key.as_bytes(), b"0", b"5000"];
            assert_eq!(source.ask_with(&command), "+OK\r\n");
        }
    }
}

/// A Redis in cluster mode.
pub(crate) fn node(more: &[&str]) -> RedisServer {
    let bus = free_port().to_string();
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port"];
    let quick = ["--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0"];
    RedisServer::start(&[&options[..], &[&bus], &quick[..], more].concat())
}

fn id(node: &RedisServer) -> String {
    let answer = node.ask("CLUSTER MYID");
    answer.lines().nth(1).expect("an id").to_owned()
}

fn bus_of(node: &RedisServer) -> String {
    let answer = node.ask("CONFIG GET cluster-port");
    answer.lines().nth(4).expect("a port").to_owned()
}

fn ok(node: &RedisServer, command: &str) {
    assert_eq!(node.ask(command), "+OK\r\n", "{command}");
}
