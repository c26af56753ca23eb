//! The clocks of all nodes, compared with that of the node that asks (server API §3 cluster_clock).
//! In: the time of the question, answers with the time at each node → out: offsets, each with its uncertainty.
//! Uses: the clock of the node. Never: shards, another clock.
//! Changed here: how an offset is computed.

use std::time::{Duration, Instant};

use fanwire_cluster::{Question, SurveyKind};
use fanwire_protocol::ErrorCode;

use super::Ask;
use crate::node::Node;

/// Asks for the time at each node.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ClockQuestion {
    /// Time of the node that asks, as Unix time in milliseconds.
    #[prost(uint64, tag = "2")]
    asked_at_ms: u64,
}

/// The clocks of all nodes; that of the node that asks is the first one.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ClusterClock {
    #[prost(message, repeated, tag = "2")]
    pub nodes: Vec<NodeClock>,
}

/// The clock of a node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeClock {
    /// Name of the node.
    #[prost(string, tag = "1")]
    pub node: String,
    /// Its time when it answered, as Unix time in milliseconds.
    #[prost(uint64, tag = "2")]
    pub unix_ms: u64,
    /// Milliseconds by which it is ahead of the node that asks, which computes this and the next field.
    #[prost(sint64, tag = "3")]
    pub offset_ms: i64,
    /// The true offset differs from `offset_ms` by at most so many milliseconds: half of the round trip, and 1 because both
    /// times are cut to whole milliseconds.
    #[prost(uint64, tag = "4")]
    pub uncertainty_ms: u64,
}

impl ClockQuestion {
    /// The question of a node at an instant.
    pub fn of(node: &Node, now: Instant) -> Self {
        Self { asked_at_ms: node.clock().unix_ms(now) }
    }
}

impl Question for ClockQuestion {
    type Answer = ClusterClock;
    const TAG: u32 = 24;
    const KIND: SurveyKind = SurveyKind::Diagnostics;

    /// The node read its clock at some time of the round trip: in the middle of it, as far as is known.
    fn merge(&self, all: &mut ClusterClock, one: ClusterClock, round_trip: Duration) {
        let half_us = round_trip.as_micros().div_ceil(2);
        let half_ms = u64::try_from(half_us / 1000).unwrap_or(u64::MAX);
        let expected_ms = self.asked_at_ms.saturating_add(half_ms);
        for mut clock in one.nodes {
            clock.offset_ms = clock.unix_ms.wrapping_sub(expected_ms).cast_signed();
            let rounded_up = u64::try_from(half_us.div_ceil(1000)).unwrap_or(u64::MAX);
            clock.uncertainty_ms = rounded_up.saturating_add(ROUNDING_MS);
            all.nodes.push(clock);
        }
    }
}

impl Ask for ClockQuestion {
    const IS_FOR_SHARDS: bool = false;

    fn begin(&self, node: &Node, now: Instant) -> Result<ClusterClock, ErrorCode> {
        let node_clock = NodeClock {
            node: node.options().name.clone(),
            unix_ms: node.clock().unix_ms(now),
            ..NodeClock::default()
        };
        Ok(ClusterClock { nodes: vec![node_clock] })
    }
}

/// Times are cut to whole milliseconds.
const ROUNDING_MS: u64 = 1;

#[cfg(test)]
mod tests;
