//! What a node of a Cluster says of it: which master has which slots, and how new that is.
//! In: the replies to CLUSTER SLOTS and CLUSTER INFO → out: a topology.
//! Uses: values of replies. Never: connections.
//! Change here: how replies are read. Who is asked and when is in `scout.rs`, what becomes of it in `cluster.rs`.

use redis::Value;

use super::super::options::Address;
use super::super::slot::SLOTS;
use super::super::wire::{Command, number, parts, text};

/// Who has the slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    /// First and last slot of a range, and its master.
    pub(crate) ranges: Vec<(u16, u16, Address)>,
    /// Grows with each failover and each move of a slot; a node that was cut off has an older one.
    pub(crate) epoch: u64,
    /// Whether the node takes the Cluster for one that works.
    pub(crate) is_ok: bool,
}

impl Topology {
    /// What to ask a node.
    pub(crate) fn questions() -> [Command; 2] {
        [Command::of(&[b"CLUSTER", b"SLOTS"]), Command::of(&[b"CLUSTER", b"INFO"])]
    }

    /// What `node` answered. Masters are reached with the credentials of `node`; where it names no host, at its own.
    pub(crate) fn read(node: &Address, [slots, info]: [Value; 2]) -> Option<Self> {
        let range = |range: Value| {
            let mut fields = parts(range)?.into_iter();
            let first = number(fields.next()?)?;
            let last = number(fields.next()?)?;
            let mut master = parts(fields.next()?)?.into_iter();
            let host = master.next().and_then(text).map(|host| host_of(&host)).unwrap_or_default();
            let port = u16::try_from(number(master.next()?)?).ok()?;
            (first <= last && last < SLOTS as u64).then_some(())?;
            Some((first as u16, last as u16, at(node, host, port)))
        };
        let ranges = parts(slots)?.into_iter().map(range).collect::<Option<_>>()?;
        let info = text(info)?;
        let info = String::from_utf8_lossy(&info);
        let said = |name: &str| {
            let rest = |line: &'_ str| Some(line.strip_prefix(name)?.strip_prefix(':')?.to_owned());
            info.lines().find_map(rest).map(|value| value.trim().to_owned())
        };
        let epoch = said("cluster_current_epoch")?.parse().ok()?;
        Some(Self { ranges, epoch, is_ok: said("cluster_state")? == "ok" })
    }

    /// How far it is to be believed: more than one that is less.
    pub(crate) fn weight(&self) -> (bool, u64) {
        (self.is_ok, self.epoch)
    }

    /// Slots that have a master.
    pub(crate) fn covered(&self) -> usize {
        self.ranges.iter().map(|(first, last, _)| usize::from(last - first) + 1).sum()
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

#[cfg(test)]
mod tests;
