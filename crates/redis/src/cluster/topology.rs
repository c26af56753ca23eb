//! The topology of a Cluster: the master of each slot, and the epoch of its claim.
//! In: the replies to CLUSTER SLOTS and CLUSTER NODES → out: a topology.
//! Uses: values of replies. Never: connections.
//! Changed here: how replies are decoded. `topology_refresh.rs` asks for them, `cluster.rs` uses the result.

use redis::Value;

use super::super::address::Address;
use super::super::slot::SLOTS;
use super::super::wire::{RedisCommand, number, parts, text};

/// Slots and masters, from one node or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    ranges: Vec<Range>,
}

/// A range of slots of one master.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
    master: Address,
    /// The configuration epoch of the master. Of two claims for a slot the one with the higher epoch counts, as in
    /// Redis.
    epoch: u64,
}

impl Topology {
    /// The commands for a node.
    pub(crate) fn commands() -> [RedisCommand; 2] {
        [RedisCommand::of(&[b"CLUSTER", b"SLOTS"]), RedisCommand::of(&[b"CLUSTER", b"NODES"])]
    }

    /// Decodes the replies of `node`. The masters get the credentials of `node`, and its host when a reply names none.
    pub(crate) fn read(node: &Address, [slots, nodes]: [Value; 2]) -> Option<Self> {
        let nodes = text(nodes)?;
        let nodes = String::from_utf8_lossy(&nodes);
        let epoch = |id: &[u8]| {
            let line = nodes.lines().find(|line| line.as_bytes().starts_with(id))?;
            line.split(' ').nth(EPOCH_FIELD)?.parse().ok()
        };
        let range = |range: Value| {
            let mut fields = parts(range)?.into_iter();
            let first = number(fields.next()?)?;
            let last = number(fields.next()?)?;
            let mut master = parts(fields.next()?)?.into_iter();
            let host = master.next().and_then(text).unwrap_or_default();
            let port = u16::try_from(number(master.next()?)?).ok()?;
            let epoch = epoch(&text(master.next()?)?)?;
            if first > last || last >= SLOTS as u64 {
                return None;
            }
            let first = first as u16;
            let last = last as u16;
            Some(Range { first, last, master: node.reported(&host, port), epoch })
        };
        let ranges = parts(slots)?.into_iter().map(range).collect::<Option<_>>()?;
        Some(Self { ranges })
    }

    /// Adds the claims of another topology.
    pub(crate) fn join(&mut self, other: Self) {
        self.ranges.extend(other.ranges);
    }

    /// Returns the master and the epoch of the claim for each slot; `None` without a claim.
    pub(crate) fn owners(&self) -> Vec<Option<(&Address, u64)>> {
        let mut owners: Vec<Option<(&Address, u64)>> = vec![None; SLOTS];
        for Range { first, last, master, epoch } in &self.ranges {
            for owner in &mut owners[usize::from(*first)..=usize::from(*last)] {
                if owner.is_none_or(|(_, other)| other < *epoch) {
                    *owner = Some((master, *epoch));
                }
            }
        }
        owners
    }
}

/// The field of a CLUSTER NODES line with the configuration epoch.
const EPOCH_FIELD: usize = 6;

#[cfg(test)]
mod tests;
