//! What nodes of a Cluster say of it: which master has which slots, and how new that is.
//! In: the replies to CLUSTER SLOTS and CLUSTER NODES → out: a topology.
//! Uses: values of replies. Never: connections.
//! Change here: how replies are read. Who is asked and when is in `scout.rs`, what becomes of it in `cluster.rs`.

use redis::Value;

use super::super::options::Address;
use super::super::slot::SLOTS;
use super::super::wire::{RedisCommand, number, parts, text};

/// Who has the slots, as one node or several say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    ranges: Vec<Range>,
}

/// Slots of one master.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
    master: Address,
    /// The configuration epoch of the master: of two that claim a slot the one with the higher has it, which is also how
    /// Redis decides.
    epoch: u64,
}

impl Topology {
    /// What to ask a node.
    pub(crate) fn questions() -> [RedisCommand; 2] {
        [RedisCommand::of(&[b"CLUSTER", b"SLOTS"]), RedisCommand::of(&[b"CLUSTER", b"NODES"])]
    }

    /// What `node` answered. Masters are reached with the credentials of `node`; where it names no host, at its own.
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
            let host = master.next().and_then(text).map(|host| host_of(&host)).unwrap_or_default();
            let port = u16::try_from(number(master.next()?)?).ok()?;
            let epoch = epoch(&text(master.next()?)?)?;
            (first <= last && last < SLOTS as u64).then_some(())?;
            let (first, last) = (first as u16, last as u16);
            Some(Range { first, last, master: at(node, host, port), epoch })
        };
        let ranges = parts(slots)?.into_iter().map(range).collect::<Option<_>>()?;
        Some(Self { ranges })
    }

    /// What both say together.
    pub(crate) fn join(&mut self, other: Self) {
        self.ranges.extend(other.ranges);
    }

    /// For each slot its master and how new that is, if anybody claims it.
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

/// Where a refusal (`MOVED` or `ASK`) of `node` points to: `SLOT HOST:PORT`.
pub(crate) fn target(node: &Address, details: &str) -> Option<Address> {
    let (_, place) = details.split_once(' ')?;
    let (host, port) = place.rsplit_once(':')?;
    Some(at(node, host_of(host.as_bytes()), port.parse().ok()?))
}

/// A host that is known; a node that does not know its own says nothing or `?`.
fn host_of(host: &[u8]) -> String {
    match host {
        b"?" => String::new(),
        host => String::from_utf8_lossy(host).into_owned(),
    }
}

fn at(node: &Address, host: String, port: u16) -> Address {
    let host = if host.is_empty() { node.host.clone() } else { host };
    Address { host, port, ..node.clone() }
}

/// Where in a line of CLUSTER NODES the configuration epoch is.
const EPOCH_FIELD: usize = 6;

#[cfg(test)]
mod tests;
