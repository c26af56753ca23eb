//! How many clients a node sends away, because it has more of them than other nodes, or because an operator asked for it.
//! In: the connections of all nodes, requests of the server API, time → out: the clients to send away in the next second.
//! Pure. Never: a connection, a clock, a message.
//! Changed here: when a rebalance begins and ends, and its rate. The shards choose the clients, in `node/hub/departures.rs`.

use std::time::{Duration, Instant};

use crate::NodeState;

/// `cluster.rebalance.*`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebalanceOptions {
    /// Nodes rebalance by themselves, not only when the server API is called.
    pub enabled: bool,
    /// Clients that a node sends away in a second.
    pub rate: u32,
    /// Age of the youngest connection that a rebalance may move.
    pub min_age: Duration,
}

impl Default for RebalanceOptions {
    fn default() -> Self {
        Self { enabled: false, rate: 200, min_age: Duration::from_secs(3600) }
    }
}

/// Connections of this node and of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    pub own: u64,
    pub others: Vec<u64>,
}

impl ConnectionCounts {
    /// The counts of this node and of those others that have run long enough to be counted on.
    pub fn new(own: u64, others: &[NodeState]) -> Self {
        let settled = others.iter().filter(|node| node.uptime_seconds >= SETTLED_SECONDS);
        Self { own, others: settled.map(|node| node.connections).collect() }
    }

    /// The mean of all nodes, rounded up.
    fn average(&self) -> u64 {
        let sum = self.own + self.others.iter().sum::<u64>();
        sum.div_ceil(1 + self.others.len() as u64)
    }

    /// Whether this node has more than 10 % above the average.
    fn is_far_above_average(&self) -> bool {
        self.own * 10 > self.average() * 11
    }
}

/// Clients to send away in the next second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departures {
    pub clients: u64,
    /// Connections that are younger stay.
    pub min_age: Duration,
}

/// The clients that one node has to send away.
#[derive(Debug, Default)]
pub struct Rebalance {
    options: RebalanceOptions,
    run: Option<Run>,
    /// The node does not begin by itself before.
    rests_until: Option<Instant>,
    /// Clients of an evacuation would come back before.
    refuses_until: Option<Instant>,
}

/// A rebalance or an evacuation that has begun.
#[derive(Clone, PartialEq, Eq, prost::Message)]
struct Run {
    /// Connections with which it ends. `None` for an evacuation.
    #[prost(uint64, optional, tag = "1")]
    goal: Option<u64>,
    /// Clients to send away.
    #[prost(uint64, tag = "2")]
    left: u64,
    /// It ends when no connection is left: shards may have fewer of them than they were to close.
    #[prost(bool, tag = "3")]
    is_of_all: bool,
    #[prost(uint32, tag = "4")]
    rate: u32,
    #[prost(uint64, tag = "5")]
    min_age_ms: u64,
}

/// A run that has begun, and the times until this node begins again or accepts clients: the state that a takeover moves.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RebalanceRecord {
    #[prost(message, optional, tag = "1")]
    run: Option<Run>,
    /// Milliseconds until the node may begin by itself.
    #[prost(uint64, tag = "2")]
    rests_ms: u64,
    /// Milliseconds until it accepts clients.
    #[prost(uint64, tag = "3")]
    refuses_ms: u64,
}

impl Rebalance {
    /// Replaces the options. A run that has begun goes on.
    pub fn configure(&mut self, options: RebalanceOptions) {
        self.options = options;
    }

    /// Begins a rebalance if this node is above the average, however little. A rate of 0 stands for that of the options.
    pub fn begin(&mut self, counts: &ConnectionCounts, rate: u32) {
        let goal = counts.average();
        self.run = Some(Run {
            goal: Some(goal),
            left: counts.own.saturating_sub(goal),
            is_of_all: false,
            rate: if rate == 0 { self.options.rate } else { rate },
            min_age_ms: self.options.min_age.as_millis() as u64,
        });
    }

    /// Begins to send away this share of the clients, of any age. A rate of 0 stands for that of the options.
    pub fn evacuate(&mut self, counts: &ConnectionCounts, percent: u64, rate: u32) {
        self.run = Some(Run {
            goal: None,
            left: (counts.own * percent).div_ceil(100),
            is_of_all: percent == 100,
            rate: if rate == 0 { self.options.rate } else { rate },
            min_age_ms: 0,
        });
    }

    /// Takes the counts once a second. Returns the clients to send away until the next time.
    pub fn step(&mut self, counts: &ConnectionCounts, now: Instant) -> Option<Departures> {
        let is_resting = self.rests_until.is_some_and(|end| now < end);
        if self.options.enabled
            && self.run.is_none()
            && !is_resting
            && counts.is_far_above_average()
        {
            self.begin(counts, 0);
            self.rests_until = Some(now + REST);
        }
        let run = self.run.as_mut()?;
        let departures = run.step(counts);
        if run.goal.is_none() && departures.is_some() {
            self.refuses_until = Some(now + REFUSAL);
        }
        if departures.is_none() {
            self.run = None;
        }
        departures
    }

    /// Returns the state for the program that goes on as this node.
    pub fn save(&self, now: Instant) -> RebalanceRecord {
        let left = |end: Option<Instant>| {
            end.map_or(0, |end| end.saturating_duration_since(now).as_millis() as u64)
        };
        RebalanceRecord {
            run: self.run.clone(),
            rests_ms: left(self.rests_until),
            refuses_ms: left(self.refuses_until),
        }
    }

    /// Goes on with the state of another program.
    pub fn take_over(&mut self, record: RebalanceRecord, now: Instant) {
        self.run = record.run;
        self.rests_until = Some(now + Duration::from_millis(record.rests_ms).min(REST));
        self.refuses_until = Some(now + Duration::from_millis(record.refuses_ms).min(REFUSAL));
    }

    /// Clients that are still to be sent away.
    pub fn left(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.left)
    }

    /// Whether it has begun, and not ended.
    pub fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Whether new clients are refused, because those of an evacuation would come back.
    pub fn refuses_clients(&self, now: Instant) -> bool {
        self.refuses_until.is_some_and(|end| now < end)
    }
}

impl Run {
    /// `None` when it has ended.
    fn step(&mut self, counts: &ConnectionCounts) -> Option<Departures> {
        let mut above = counts.own;
        if let Some(goal) = &mut self.goal {
            // Clients on their way are in no count: only an average that grew is believed.
            *goal = counts.average().max(*goal);
            above = above.saturating_sub(*goal);
        }
        if self.is_of_all {
            self.left = above;
        }
        let clients = self.left.min(above).min(u64::from(self.rate));
        self.left -= clients;
        let min_age = Duration::from_millis(self.min_age_ms);
        (clients > 0).then_some(Departures { clients, min_age })
    }
}

/// A node counts when it has run for so long: one that ends soon after its start attracts no clients.
const SETTLED_SECONDS: u64 = 10;

/// New clients are refused for so long after a second in which clients of an evacuation left. The first attempt of an SDK to connect
/// again follows within some seconds.
const REFUSAL: Duration = Duration::from_secs(10);

/// After a node has begun to rebalance by itself, it does not begin again for this time, whatever other nodes do. In ten
/// minutes it sends away at most the clients that it had above the average when it began.
const REST: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests;
