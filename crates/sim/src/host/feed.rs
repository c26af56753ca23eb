//! The PUB/SUB connection of a host: which names it follows, which of them are confirmed, which calls wait for that.
//! In: names that the node subscribes to, confirmations, the loss of the connection → out: names to ask for, calls to send, gaps.
//! Pure: a model of what the Redis crate does (docs/redis-failures.md). Never: the network.
//! Changed here: what a host does about its subscriptions.

use std::collections::BTreeMap;

use crate::engine::ports::{Call, GiveUp};
use crate::engine::{BLOCKS, NODES};

/// The connection and its subscriptions.
#[derive(Default)]
pub struct Feed {
    /// Counts the connections.
    pub generation: u64,
    pub is_open: bool,
    names: BTreeMap<String, Followed>,
    last_number: u64,
}

#[derive(Default)]
struct Followed {
    /// The number of the request that is to be confirmed.
    number: u64,
    is_confirmed: bool,
    /// It was confirmed on a connection that is gone.
    was_lost: bool,
    waiters: Vec<Call>,
}

/// A subscription is active.
pub struct Confirmation {
    /// Calls that waited for it.
    pub calls: Vec<Call>,
    /// Messages were missed since an earlier subscription.
    pub may_have_gap: bool,
}

impl Feed {
    /// The node wants a name. Returns the number of the request, if the connection is open.
    pub fn follow(&mut self, name: &str) -> Option<u64> {
        self.last_number += 1;
        let followed = self.names.entry(name.to_owned()).or_default();
        followed.number = self.last_number;
        followed.is_confirmed = false;
        self.is_open.then_some(self.last_number)
    }

    /// The node does not want a name any more. Returns the calls that waited for it.
    pub fn leave(&mut self, name: &str) -> Vec<GiveUp> {
        let left = self.names.remove(name);
        let waiters = left.map(|it| it.waiters).unwrap_or_default();
        waiters.into_iter().map(|call| call.give_up).collect()
    }

    /// A call that may be sent when a name is confirmed. Returns it if that is so now, or if the node does not want the name.
    pub fn wait(&mut self, name: &str, call: Call) -> Option<Call> {
        match self.names.get_mut(name) {
            Some(followed) if !followed.is_confirmed => {
                followed.waiters.push(call);
                None
            }
            _ => Some(call),
        }
    }

    /// The engine has confirmed a request.
    pub fn confirm(&mut self, name: &str, number: u64) -> Option<Confirmation> {
        let followed = self.names.get_mut(name).filter(|it| it.number == number)?;
        followed.is_confirmed = true;
        let calls = std::mem::take(&mut followed.waiters);
        Some(Confirmation { calls, may_have_gap: std::mem::take(&mut followed.was_lost) })
    }

    /// The names whose subscription works.
    pub fn confirmed_names(&self) -> Vec<String> {
        let confirmed = self.names.iter().filter(|(_, followed)| followed.is_confirmed);
        confirmed.map(|(name, _)| name.clone()).collect()
    }

    /// Whether it is open, and each subscription works.
    pub fn is_whole(&self) -> bool {
        self.is_open && self.names.values().all(|followed| followed.is_confirmed)
    }

    /// The subscriptions to all names end, but those between nodes. Returns the names.
    pub fn lose_names(&mut self) -> Vec<String> {
        let mut lost = Vec::new();
        let of_channels = self.names.iter_mut().filter(|(name, _)| !is_of_nodes(name));
        for (name, followed) in of_channels.filter(|(_, followed)| followed.is_confirmed) {
            followed.is_confirmed = false;
            followed.was_lost = true;
            lost.push(name.clone());
        }
        lost
    }

    /// The names that were lost, with the numbers of new requests.
    pub fn follow_lost(&mut self) -> Vec<(String, u64)> {
        let is_lost = |followed: &Followed| followed.was_lost && !followed.is_confirmed;
        let lost = self.names.iter().filter(|(_, followed)| is_lost(followed));
        let names: Vec<String> = lost.map(|(name, _)| name.clone()).collect();
        names.into_iter().filter_map(|name| Some((name.clone(), self.follow(&name)?))).collect()
    }

    /// The connection is gone. Returns what gives up the calls that waited.
    pub fn lose(&mut self) -> Vec<GiveUp> {
        self.is_open = false;
        let mut given_up = Vec::new();
        for followed in self.names.values_mut() {
            followed.was_lost |= followed.is_confirmed;
            followed.is_confirmed = false;
            given_up.extend(followed.waiters.drain(..).map(|call| call.give_up));
        }
        given_up
    }

    /// A new connection is open. Returns the names to ask for, with the numbers of the requests.
    pub fn open(&mut self) -> Vec<(String, u64)> {
        self.generation += 1;
        self.is_open = true;
        let names: Vec<String> = self.names.keys().cloned().collect();
        let numbered = names.into_iter().map(|name| {
            let number = self.follow(&name).expect("it is open");
            (name, number)
        });
        numbered.collect()
    }
}

fn is_of_nodes(name: &str) -> bool {
    [NODES, BLOCKS].contains(&name)
}
