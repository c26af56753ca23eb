//! The rule of a rebalance, alone and in a model of a cluster.
//! In: counts, nodes that come and go, simulated seconds → out: how many clients move, where they are in the end.
//! Uses a balancer that counts connections, and counts that are as old as messages between nodes. Never: a clock.
//! Changed here: expectations of `rebalance.rs`.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

#[test]
fn a_rebalance_begins_above_ten_percent_and_ends_at_the_average() {
    let check = |own: u64, others: &[u64], expected: u64| {
        let counts = ConnectionCounts { own, others: others.to_vec() };
        let mut rebalance = enabled(u32::MAX);
        let departures = rebalance.step(&counts, Instant::now());
        assert_eq!(departures.map_or(0, |it| it.clients), expected, "{own} of {others:?}");
    };
    check(100, &[0], 50);
    check(100, &[100], 0);
    check(110, &[90], 0);
    check(111, &[89], 11);
    check(100, &[0, 0, 0], 75);
    check(0, &[100], 0);
    check(100, &[], 0);
    check(1, &[0], 0);
    check(2, &[1], 0);
}

#[test]
fn a_node_that_has_just_started_does_not_count() {
    let node = |uptime_seconds| NodeState { uptime_seconds, ..NodeState::default() };
    let counts = ConnectionCounts::new(100, &[node(9), node(10)]);
    assert_eq!(counts, ConnectionCounts { own: 100, others: vec![0] });
}

#[test]
fn a_node_begins_by_itself_only_if_it_is_enabled_and_at_most_once_in_ten_minutes() {
    let start = Instant::now();
    let counts = ConnectionCounts { own: 100, others: vec![0] };
    let mut rebalance = Rebalance::default();
    assert_eq!(rebalance.step(&counts, start), None);
    let mut rebalance = enabled(1000);
    assert_eq!(rebalance.step(&counts, start).map(|it| it.clients), Some(50));
    assert!(!rebalance.refuses_clients(start), "clients may come back");
    assert_eq!(rebalance.step(&counts, start + Duration::from_secs(1)), None, "all have left");
    assert_eq!(rebalance.step(&counts, start + Duration::from_secs(599)), None);
    let again = rebalance.step(&counts, start + Duration::from_secs(600));
    assert_eq!(again.map(|it| it.clients), Some(50));
}

#[test]
fn another_program_goes_on_with_what_has_begun() {
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    let take_over = |before: &Rebalance, now| {
        let mut next = enabled(20);
        next.take_over(before.save(now), now);
        next
    };
    let mut rebalance = enabled(20);
    let counts = |own| ConnectionCounts { own, others: vec![0] };
    assert_eq!(rebalance.step(&counts(100), start).map(|it| it.clients), Some(20));
    let mut rebalance = take_over(&rebalance, after(1));
    assert_eq!(rebalance.left(), 30);
    assert_eq!(rebalance.step(&counts(60), after(2)).map(|it| it.clients), Some(10));
    assert_eq!(rebalance.step(&counts(50), after(3)), None);
    let mut rebalance = take_over(&rebalance, after(10));
    assert_eq!(rebalance.step(&counts(100), after(599)), None, "it rests");
    rebalance.evacuate(&counts(100), 100, 100);
    assert!(rebalance.step(&counts(100), after(600)).is_some());
    let rebalance = take_over(&rebalance, after(601));
    assert!(rebalance.refuses_clients(after(609)) && !rebalance.refuses_clients(after(610)));
}

#[test]
fn a_rebalance_on_request_needs_no_ten_percent_and_no_rest() {
    let counts = ConnectionCounts { own: 102, others: vec![98] };
    let mut rebalance = Rebalance::default();
    for _ in 0..2 {
        rebalance.begin(&counts, 1);
        assert_eq!(rebalance.left(), 2);
        let first = rebalance.step(&counts, Instant::now());
        let min_age = Duration::from_secs(3600);
        assert_eq!(first, Some(Departures { clients: 1, min_age }));
    }
}

#[test]
fn a_rebalance_ends_when_the_other_node_is_gone() {
    let start = Instant::now();
    let mut rebalance = enabled(10);
    let counts = ConnectionCounts { own: 100, others: vec![0] };
    assert!(rebalance.step(&counts, start).is_some());
    let alone = ConnectionCounts { own: 90, others: Vec::new() };
    assert_eq!(rebalance.step(&alone, start + Duration::from_secs(1)), None);
    assert_eq!(rebalance.left(), 0);
}

#[test]
fn an_evacuation_sends_away_clients_of_any_age_whatever_others_have() {
    let counts = ConnectionCounts { own: 50, others: vec![1000] };
    let mut rebalance = Rebalance::default();
    rebalance.evacuate(&counts, 50, 10);
    let start = Instant::now();
    let mut sent = Vec::new();
    while let Some(departures) = rebalance.step(&counts, start) {
        assert_eq!(departures.min_age, Duration::ZERO);
        sent.push(departures.clients);
    }
    assert_eq!(sent, [10, 10, 5]);
    assert!(rebalance.refuses_clients(start + Duration::from_millis(9_999)));
    assert!(!rebalance.refuses_clients(start + Duration::from_secs(10)));
}

#[test]
fn an_evacuation_of_all_goes_on_until_the_node_is_empty() {
    let mut counts = ConnectionCounts { own: 4, others: vec![0] };
    let mut rebalance = Rebalance::default();
    rebalance.evacuate(&counts, 100, 10);
    assert_eq!(rebalance.step(&counts, Instant::now()).map(|it| it.clients), Some(4));
    counts.own = 1; // a shard had more clients than it was to close
    assert_eq!(rebalance.step(&counts, Instant::now()).map(|it| it.clients), Some(1));
    counts.own = 0;
    assert_eq!(rebalance.step(&counts, Instant::now()), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nodes_are_balanced_and_each_client_has_moved_once_at_most(
        filled in prop::collection::vec(0..200_u32, 1..5),
        empty in 1..3_usize,
        rate in 5..50_u32,
    ) {
        let mut cluster = ModelCluster::new(&filled, rate);
        (0..empty).for_each(|_| cluster.start_node());
        cluster.run(1500);
        let total: u64 = filled.iter().map(|count| u64::from(*count)).sum();
        let counts = cluster.counts();
        prop_assert_eq!(counts.iter().sum::<u64>(), total);
        let average = total.div_ceil(counts.len() as u64);
        prop_assert!(counts.iter().all(|count| count * 10 <= average * 11), "{:?}", counts);
        prop_assert!(cluster.clients.iter().all(|client| client.moves <= 1));
        prop_assert!(cluster.most_in_a_second <= u64::from(rate) * filled.len() as u64);
    }

    /// One of the nodes dies and starts again all the time, and its clients go to the others.
    #[test]
    fn a_node_that_flaps_causes_no_storm(
        nodes in 1..5_usize,
        clients in 50..200_u32,
        up in 1..120_u32,
        down in 1..30_u32,
    ) {
        let mut cluster = ModelCluster::new(&vec![clients; nodes], 20);
        for ten_minutes in 1..=6 {
            let end = 7200 + 600 * ten_minutes;
            while cluster.second + up + down <= end {
                cluster.start_node();
                cluster.run(up);
                cluster.end_last_node();
                cluster.run(down);
            }
            let moves: u32 = cluster.clients.iter().map(|client| client.moves).sum();
            // Each node begins once in this time, with what it has above the average with an empty node.
            let share = (clients * nodes as u32).div_ceil(nodes as u32 + 1) + nodes as u32;
            prop_assert!(moves <= share * ten_minutes, "{} moves in {}", moves, ten_minutes);
        }
        prop_assert!(cluster.clients.iter().all(|client| client.moves <= 2), "an hour and a bit");
    }
}

fn enabled(rate: u32) -> Rebalance {
    let mut rebalance = Rebalance::default();
    rebalance.configure(RebalanceOptions { enabled: true, rate, ..RebalanceOptions::default() });
    rebalance
}

/// Nodes with clients, behind a balancer that gives each client to the node with the fewest connections.
struct ModelCluster {
    start: Instant,
    second: u32,
    rate: u32,
    nodes: Vec<ModelNode>,
    clients: Vec<ModelClient>,
    /// Clients without a node, with the second in which they connect.
    on_their_way: VecDeque<(u32, usize)>,
    most_in_a_second: u64,
}

struct ModelNode {
    started: u32,
    rebalance: Rebalance,
    clients: Vec<usize>,
    /// The last state that it sent.
    told: NodeState,
}

#[derive(Clone, Default)]
struct ModelClient {
    connected: u32,
    moves: u32,
}

impl ModelCluster {
    /// Nodes with so many clients, which have been there for two hours.
    fn new(counts: &[u32], rate: u32) -> Self {
        let mut cluster = Self {
            start: Instant::now(),
            second: 7200,
            rate,
            nodes: Vec::new(),
            clients: Vec::new(),
            on_their_way: VecDeque::new(),
            most_in_a_second: 0,
        };
        for count in counts {
            let first = cluster.clients.len();
            let end = first + *count as usize;
            cluster.clients.resize(end, ModelClient::default());
            cluster.start_node();
            if let Some(node) = cluster.nodes.last_mut() {
                node.started = 0;
                node.clients = (first..end).collect();
                node.tell(7200);
            }
        }
        cluster
    }

    fn start_node(&mut self) {
        let mut node = ModelNode {
            started: self.second,
            rebalance: enabled(self.rate),
            clients: Vec::new(),
            told: NodeState::default(),
        };
        node.tell(self.second);
        self.nodes.push(node);
    }

    fn end_last_node(&mut self) {
        let clients = self.nodes.pop().map(|node| node.clients).unwrap_or_default();
        let at = self.second + RECONNECT_SECONDS;
        self.on_their_way.extend(clients.into_iter().map(|client| (at, client)));
    }

    fn run(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.second += 1;
            self.accept();
            if self.second.is_multiple_of(STATE_SECONDS) {
                self.nodes.iter_mut().for_each(|node| node.tell(self.second));
            }
            self.send_away();
        }
    }

    fn accept(&mut self) {
        while let Some((_, client)) = self.on_their_way.pop_front_if(|(at, _)| *at <= self.second) {
            let fewest = self.nodes.iter_mut().min_by_key(|node| node.clients.len());
            fewest.expect("a node").clients.push(client);
            self.clients[client].connected = self.second;
        }
    }

    fn send_away(&mut self) {
        let told: Vec<NodeState> = self.nodes.iter().map(|node| node.told.clone()).collect();
        let now = self.start + Duration::from_secs(u64::from(self.second));
        let mut sent = 0;
        for (number, node) in self.nodes.iter_mut().enumerate() {
            let mut others = told.clone();
            others.remove(number);
            let counts = ConnectionCounts::new(node.clients.len() as u64, &others);
            let Some(departures) = node.rebalance.step(&counts, now) else { continue };
            let mut left = departures.clients;
            for client in std::mem::take(&mut node.clients) {
                let age = u64::from(self.second - self.clients[client].connected);
                if left == 0 || age < departures.min_age.as_secs() {
                    node.clients.push(client);
                    continue;
                }
                left -= 1;
                sent += 1;
                self.clients[client].moves += 1;
                self.on_their_way.push_back((self.second + RECONNECT_SECONDS, client));
            }
        }
        self.most_in_a_second = self.most_in_a_second.max(sent);
    }

    fn counts(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.clients.len() as u64).collect()
    }
}

impl ModelNode {
    fn tell(&mut self, second: u32) {
        self.told.connections = self.clients.len() as u64;
        self.told.uptime_seconds = u64::from(second - self.started);
    }
}

const RECONNECT_SECONDS: u32 = 2;
const STATE_SECONDS: u32 = 3;
