//! A Redis Cluster: which master has which slot, and the connections to all of them.
//! In: topologies, calls that a master sends elsewhere → out: the server of a slot; names move to where their slots go.
//! Uses: servers, one lock that is held for a look, or to change the map. Never: sockets; it does not ask for topologies.
//! Change here: what a new topology leads to. Who is asked for one and when is in `cluster/scout.rs`.

mod scout;
mod seeds;
pub(crate) mod topology;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard};
use tokio::sync::Notify;

use super::dial::Expected;
use super::error::RedisError;
use super::feed::Feed;
use super::guide::{Elsewhere, Guide, Guided, Way};
use super::line::{Call, Limbo, Line};
use super::options::{Address, RedisOptions};
use super::server::{Opener, Server};
use super::slot::{self, SLOTS};
use super::store::Spot;
use topology::Topology;

/// One Cluster. Its connections end with it.
pub(crate) struct Cluster {
    /// Nodes that are asked when no other is known.
    seeds: Vec<Address>,
    opener: Opener,
    guided: Guided,
    map: RwLock<Map>,
    /// Calls that wait for their slot, and how they get there.
    limbo: Mutex<Limbo>,
    waiting: Line,
    /// Somebody wants the topology to be looked at.
    woken: Arc<Notify>,
    /// Every slot has a master.
    is_whole: AtomicBool,
    /// Looks in a row at which a slot was said to be where it was before.
    older: AtomicU32,
}

/// Who has which slot.
struct Map {
    /// For each slot the index of its server.
    slots: Vec<u16>,
    /// And how new that is.
    epochs: Vec<u64>,
    /// The first leads nowhere: it has the slots without a master.
    servers: Vec<Arc<Server>>,
}

impl Map {
    fn server(&self, slot: u16) -> &Arc<Server> {
        &self.servers[usize::from(self.slots[usize::from(slot)])]
    }

    fn at(&self, address: &Address) -> Option<&Arc<Server>> {
        self.servers[1..].iter().find(|server| server.address == *address)
    }

    /// What a topology makes of this, and whether it is older for a slot that is then left where it is, unless
    /// `takes_older`. Masters that are new are opened by `open`.
    fn after(
        &self,
        topology: &Topology,
        takes_older: bool,
        open: impl Fn(&Address) -> Server,
    ) -> (Self, bool) {
        let servers = vec![Arc::clone(&self.servers[0])];
        let mut next = Self { slots: vec![0; SLOTS], epochs: vec![0; SLOTS], servers };
        let mut is_older = false;
        for (slot, owner) in topology.owners().into_iter().enumerate() {
            let Some((mut master, mut epoch)) = owner else { continue };
            let (server, known) = (self.server(slot as u16), self.epochs[slot]);
            if epoch < known && !takes_older {
                is_older = true;
                (master, epoch) = (&server.address, known);
            }
            next.slots[slot] = next.index(master, || {
                self.at(master).cloned().unwrap_or_else(|| Arc::new(open(master)))
            });
            next.epochs[slot] = epoch;
        }
        (next, is_older)
    }

    /// The index of a master, which is put here if it is not.
    fn index(&mut self, master: &Address, find: impl Fn() -> Arc<Server>) -> u16 {
        let known = self.servers[1..].iter().position(|server| server.address == *master);
        let index = known.map_or(self.servers.len(), |index| index + 1);
        if known.is_none() {
            self.servers.push(find());
        }
        index as u16
    }

    /// Whether a slot has another server in `other`.
    fn differs(&self, other: &Self, slot: usize) -> bool {
        let [one, other] = [self, other].map(|map| map.server(slot as u16));
        !Arc::ptr_eq(one, other)
    }
}

impl Cluster {
    /// Begins to look for the masters, and goes on until it is dropped.
    pub(crate) fn start(seeds: Vec<Address>, opener: Opener) -> Arc<Self> {
        opener.health.counts_on();
        let cluster = Arc::new_cyclic(|me: &Weak<Self>| {
            let guided = Guided::by(me.clone());
            let (nowhere, limbo) = opener.nowhere(&guided);
            let waiting = nowhere.lines[0].clone();
            let (slots, epochs) = (vec![0; SLOTS], vec![0; SLOTS]);
            let map = RwLock::new(Map { slots, epochs, servers: vec![Arc::new(nowhere)] });
            let (limbo, woken) = (Mutex::new(limbo), Arc::new(Notify::new()));
            let (is_whole, older) = (AtomicBool::new(false), AtomicU32::new(0));
            Self { seeds, opener, guided, map, limbo, waiting, woken, is_whole, older }
        });
        let watch = scout::watch(Arc::downgrade(&cluster), Arc::clone(&cluster.woken));
        cluster.opener.runtime.spawn(watch);
        cluster
    }

    /// Whether one of the seeds is a node of a Cluster that will do.
    ///
    /// # Errors
    /// What is wrong, if possible with what needs somebody to change it.
    pub(crate) async fn check(seeds: &[Address], options: &RedisOptions) -> Result<(), RedisError> {
        scout::ask_seeds(seeds, options).await.map(drop)
    }

    pub(crate) fn server(&self, slot: u16) -> Arc<Server> {
        Arc::clone(self.map.read_recursive().server(slot))
    }

    /// The feed of a name; the name stays there while it is held.
    pub(crate) fn feed(&self, spot: Spot) -> MappedRwLockReadGuard<'_, Feed> {
        RwLockReadGuard::map(self.map.read_recursive(), |map| {
            let feeds = &map.server(spot.slot).feeds;
            &feeds[spot.lane(feeds.len())]
        })
    }

    /// The masters that are known.
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        self.map.read_recursive().servers[1..].to_vec()
    }

    /// Slots are where `topology` says: names move there, and what waited for that goes on.
    fn adopt(&self, topology: &Topology) {
        let older = self.older.load(Relaxed);
        let open =
            |address: &Address| self.opener.open(address, Expected::ClusterMaster, &self.guided);
        let (next, is_older) = self.map.read().after(topology, older >= OLDER_MAX, open);
        self.older.store(if is_older { older + 1 } else { 0 }, Relaxed);
        let missing = next.slots.iter().filter(|index| **index == 0).count();
        let changed: Vec<bool> = {
            let map = self.map.read();
            (0..SLOTS).map(|slot| map.differs(&next, slot)).collect()
        };
        if changed.contains(&true) {
            let masters: Vec<String> =
                next.servers[1..].iter().map(|server| server.address.to_string()).collect();
            tracing::info!("slots of the Redis Cluster are at {}", masters.join(", "));
            let former = self.move_to(next, &changed);
            drop(former); // connections that are not needed any more end here, outside of the lock
        } else {
            self.map.write().epochs = next.epochs;
        }
        self.is_covered(missing);
        let servers = self.servers();
        servers.iter().flat_map(|server| &server.feeds).for_each(Feed::ask_displaced);
    }

    /// Changes the map, and moves the names of changed slots with it, in one moment for whoever wants or leaves one.
    fn move_to(&self, next: Map, changed: &[bool]) -> Map {
        let mut map = self.map.write();
        let is_elsewhere = |name: &str| changed[usize::from(slot::of(name.as_bytes()))];
        for server in &map.servers {
            for (lane, feed) in server.feeds.iter().enumerate() {
                let mut moved: Vec<Vec<_>> = next.servers.iter().map(|_| Vec::new()).collect();
                for name in feed.take(is_elsewhere) {
                    let slot = usize::from(slot::of(name.name().as_bytes()));
                    moved[usize::from(next.slots[slot])].push(name);
                }
                for (server, moved) in next.servers.iter().zip(moved) {
                    if !moved.is_empty() {
                        server.feeds[lane].put(moved);
                    }
                }
            }
        }
        std::mem::replace(&mut map, next)
    }

    /// Counts as a connection: it is up while every slot has a master.
    fn is_covered(&self, missing: usize) {
        let is_whole = missing == 0;
        if !is_whole {
            let reply = format!("{missing} slots of the Cluster have no master");
            let address = self.seeds.first().cloned().unwrap_or_default();
            self.opener.health.is_troubled(RedisError::Refused { address, reply });
        }
        match (self.is_whole.swap(is_whole, Relaxed), is_whole) {
            (false, true) => self.opener.health.came_up(),
            (true, false) => self.opener.health.went_down(),
            _ => {}
        }
    }

    /// Sends what waited, now that the slots were looked at. What has none, or waited for too long, fails.
    fn settle(&self) {
        let calls = {
            let mut limbo = self.limbo.lock();
            limbo.close();
            limbo.take()
        };
        let now = Instant::now();
        for call in calls {
            let way = Way { is_asking: false, hops: 0, ..call.way() };
            let server = self.server(way.slot);
            if way.waits_until.is_some_and(|until| until <= now) || self.is_nowhere(&server) {
                call.fail();
            } else {
                let line = &server.lines[way.lane];
                line.pass(call.on(way), line.is_down());
            }
        }
        let nowhere = Arc::clone(&self.map.read().servers[0]);
        nowhere.feeds.iter().for_each(Feed::tire);
    }

    fn is_nowhere(&self, server: &Arc<Server>) -> bool {
        Arc::ptr_eq(&self.map.read_recursive().servers[0], server)
    }

    /// Whether every slot has a master that can be reached, and all agree about it, as far as is known.
    fn is_settled(&self) -> bool {
        let is_sure = self.is_whole.load(Relaxed) && self.older.load(Relaxed) == 0;
        is_sure && !self.servers().iter().any(|server| server.is_down())
    }
}

impl Guide for Cluster {
    fn pass_on(&self, call: Call, elsewhere: Elsewhere) {
        let way = call.way();
        let (address, is_asking) = match elsewhere {
            Elsewhere::Moved(address) => (Some(address), false),
            Elsewhere::Ask(address) => (Some(address), true),
            Elsewhere::Later => (None, false),
        };
        let hops = way.hops + u8::from(address.is_some());
        let until =
            way.waits_until.unwrap_or_else(|| Instant::now() + self.opener.options.io_timeout);
        if hops > HOPS_MAX || until <= Instant::now() {
            return call.fail();
        }
        let way = Way { hops, is_asking, waits_until: Some(until), ..way };
        match address.and_then(|address| self.map.read_recursive().at(&address).cloned()) {
            Some(server) => {
                let line = &server.lines[way.lane];
                line.pass(call.on(way), line.is_down());
            }
            None => self.waiting.pass(call.on(way), false),
        }
    }

    fn look_again(&self) {
        self.woken.notify_one();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.woken.notify_one();
    }
}

/// How often a call is sent elsewhere between two looks at the slots. How long it may go on is a matter of time.
const HOPS_MAX: u8 = 4;
/// How often nodes may say what is older than what others said before, until it is believed: the Cluster was made anew.
const OLDER_MAX: u32 = 8;

#[cfg(test)]
mod tests;
