//! A Redis Cluster: the map from slots to masters, and the connections to all masters.
//! In: topologies, redirected calls → out: the server of a slot; names move with their slots.
//! Uses: servers, one lock that is held for one look or a change of the map. Never: sockets; it does not ask for topologies.
//! Changed here: the effect of a new topology. `cluster/topology_refresh.rs` asks for it.

mod seeds;
mod topology;
mod topology_refresh;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard};
use tokio::sync::Notify;

use super::address::Address;
use super::call::{Call, Route};
use super::command_connection::{CommandConnection, UnroutedCalls};
use super::dial::Expected;
use super::error::RedisError;
use super::location::Location;
use super::options::RedisOptions;
use super::pubsub_connection::PubSubConnection;
use super::redirect::{ClusterRedirects, Redirect, Redirector};
use super::server::{ConnectionFactory, Server};
use super::slot::{self, SLOTS};
use topology::Topology;

/// One Cluster. Its connections end with it.
pub(crate) struct Cluster {
    /// Configured nodes, which are asked when no other node answers.
    seeds: Vec<Address>,
    factory: ConnectionFactory,
    redirects: ClusterRedirects,
    map: RwLock<Map>,
    /// Calls that wait for their slot, and the connection that queues them.
    unrouted_calls: Mutex<UnroutedCalls>,
    unrouted_connection: CommandConnection,
    /// Wakes the topology refresh.
    woken: Arc<Notify>,
    /// Every slot has a master.
    is_complete: AtomicBool,
    /// Refreshes in a row with an older claim for a slot.
    older: AtomicU32,
}

/// The map from slots to servers.
struct Map {
    /// Index of the server, for each slot.
    slots: Vec<u16>,
    /// Configuration epoch of the claim, for each slot.
    epochs: Vec<u64>,
    /// The first is no Redis; it has the slots without a master.
    servers: Vec<Arc<Server>>,
}

impl Map {
    fn server(&self, slot: u16) -> &Arc<Server> {
        &self.servers[usize::from(self.slots[usize::from(slot)])]
    }

    fn at(&self, address: &Address) -> Option<&Arc<Server>> {
        self.servers[1..].iter().find(|server| server.address == *address)
    }

    /// The map after a topology, and whether a claim of the topology was older than the known one. Such a slot stays
    /// where it is, unless `takes_older`. `open` connects to new masters.
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
            let server = self.server(slot as u16);
            let known = self.epochs[slot];
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

    /// The index of a master, which is added if it is missing.
    fn index(&mut self, master: &Address, find: impl Fn() -> Arc<Server>) -> u16 {
        let known = self.servers[1..].iter().position(|server| server.address == *master);
        let index = known.map_or(self.servers.len(), |index| index + 1);
        if known.is_none() {
            self.servers.push(find());
        }
        index as u16
    }

    /// Whether the slot has another server in `other`.
    fn differs(&self, other: &Self, slot: usize) -> bool {
        let [one, other] = [self, other].map(|map| map.server(slot as u16));
        !Arc::ptr_eq(one, other)
    }
}

impl Cluster {
    /// Starts to look for the masters, until it is dropped.
    pub(crate) fn start(seeds: Vec<Address>, factory: ConnectionFactory) -> Arc<Self> {
        factory.health.connection_added();
        let cluster = Arc::new_cyclic(|me: &Weak<Self>| {
            let redirects = ClusterRedirects::by(me.clone());
            let (unrouted, unrouted_calls) = factory.unrouted(&redirects);
            let unrouted_connection = unrouted.command_connections[0].clone();
            let slots = vec![0; SLOTS];
            let epochs = vec![0; SLOTS];
            let map = RwLock::new(Map { slots, epochs, servers: vec![Arc::new(unrouted)] });
            let unrouted_calls = Mutex::new(unrouted_calls);
            let woken = Arc::new(Notify::new());
            let is_complete = AtomicBool::new(false);
            let older = AtomicU32::new(0);
            Self {
                seeds,
                factory,
                redirects,
                map,
                unrouted_calls,
                unrouted_connection,
                woken,
                is_complete,
                older,
            }
        });
        let watch = topology_refresh::run(Arc::downgrade(&cluster), Arc::clone(&cluster.woken));
        cluster.factory.runtime.spawn(watch);
        cluster
    }

    /// Checks that one of the seeds is a node of a usable Cluster.
    ///
    /// # Errors
    /// The first permanent error, or else the first error.
    pub(crate) async fn check(seeds: &[Address], options: &RedisOptions) -> Result<(), RedisError> {
        topology_refresh::ask_seeds(seeds, options).await.map(drop)
    }

    pub(crate) fn server(&self, slot: u16) -> Arc<Server> {
        Arc::clone(self.map.read_recursive().server(slot))
    }

    /// The PUB/SUB connection of a name; the name stays there while the guard is held.
    pub(crate) fn pubsub_connection(
        &self,
        location: Location,
    ) -> MappedRwLockReadGuard<'_, PubSubConnection> {
        RwLockReadGuard::map(self.map.read_recursive(), |map| {
            let pubsub_connections = &map.server(location.slot).pubsub_connections;
            &pubsub_connections[location.connection_index(pubsub_connections.len())]
        })
    }

    /// The known masters.
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        self.map.read_recursive().servers[1..].to_vec()
    }

    /// Takes a topology: names move with their slots, and waiting calls can go on.
    fn adopt(&self, topology: &Topology) {
        let older = self.older.load(Relaxed);
        let open = |address: &Address| {
            self.factory.open(address, Expected::ClusterMaster, &self.redirects)
        };
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
            let previous = self.move_to(next, &changed);
            drop(previous); // connections that are not needed any more end here, outside of the lock
        } else {
            self.map.write().epochs = next.epochs;
        }
        self.report_missing_slots(missing);
        let servers = self.servers();
        servers
            .iter()
            .flat_map(|server| &server.pubsub_connections)
            .for_each(PubSubConnection::retry_misrouted);
    }

    /// Replaces the map and moves the names of changed slots, under one lock: a subscribe or unsubscribe sees the
    /// state before or after.
    fn move_to(&self, next: Map, changed: &[bool]) -> Map {
        let mut map = self.map.write();
        let is_elsewhere = |name: &str| changed[usize::from(slot::of(name.as_bytes()))];
        for server in &map.servers {
            for (connection_index, pubsub) in server.pubsub_connections.iter().enumerate() {
                let mut moved: Vec<Vec<_>> = next.servers.iter().map(|_| Vec::new()).collect();
                for name in pubsub.take_matching(is_elsewhere) {
                    let slot = usize::from(slot::of(name.name().as_bytes()));
                    moved[usize::from(next.slots[slot])].push(name);
                }
                for (server, moved) in next.servers.iter().zip(moved) {
                    if !moved.is_empty() {
                        server.pubsub_connections[connection_index].insert_moved(moved);
                    }
                }
            }
        }
        std::mem::replace(&mut map, next)
    }

    /// Reports the Cluster as a connection, which is up while every slot has a master.
    fn report_missing_slots(&self, missing: usize) {
        let is_complete = missing == 0;
        if !is_complete {
            let reply = format!("{missing} slots of the Cluster have no master");
            let address = self.seeds.first().cloned().unwrap_or_default();
            self.factory.health.report_error(RedisError::Refused { address, reply });
        }
        match (self.is_complete.swap(is_complete, Relaxed), is_complete) {
            (false, true) => self.factory.health.connection_up(),
            (true, false) => self.factory.health.connection_lost(),
            _ => {}
        }
    }

    /// Sends waiting calls after a refresh. Calls whose slot has no master, and those that waited too long, fail.
    fn send_waiting_calls(&self) {
        let calls = {
            let mut unrouted_calls = self.unrouted_calls.lock();
            unrouted_calls.close();
            unrouted_calls.take()
        };
        let now = Instant::now();
        for call in calls {
            let route = Route { is_asking: false, redirect_count: 0, ..call.route() };
            let server = self.server(route.slot);
            if route.wait_deadline.is_some_and(|until| until <= now) || self.is_unrouted(&server) {
                call.fail();
            } else {
                let connection = &server.command_connections[route.connection_index];
                connection.forward(call.on(route), connection.is_down());
            }
        }
        let unrouted = Arc::clone(&self.map.read().servers[0]);
        unrouted.pubsub_connections.iter().for_each(PubSubConnection::expire_waiters);
    }

    fn is_unrouted(&self, server: &Arc<Server>) -> bool {
        Arc::ptr_eq(&self.map.read_recursive().servers[0], server)
    }

    /// Whether every slot has a reachable master and no older claim is pending.
    fn is_settled(&self) -> bool {
        let is_certain = self.is_complete.load(Relaxed) && self.older.load(Relaxed) == 0;
        is_certain && !self.servers().iter().any(|server| server.is_down())
    }
}

impl Redirector for Cluster {
    fn redirect(&self, call: Call, redirect: Redirect) {
        let route = call.route();
        let (address, is_asking) = match redirect {
            Redirect::Moved(address) => (Some(address), false),
            Redirect::Ask(address) => (Some(address), true),
            Redirect::TryAgain => (None, false),
        };
        let redirect_count = route.redirect_count + u8::from(address.is_some());
        let until =
            route.wait_deadline.unwrap_or_else(|| Instant::now() + self.factory.options.io_timeout);
        if redirect_count > REDIRECTS_MAX || until <= Instant::now() {
            return call.fail();
        }
        let route = Route { redirect_count, is_asking, wait_deadline: Some(until), ..route };
        match address.and_then(|address| self.map.read_recursive().at(&address).cloned()) {
            Some(server) => {
                let connection = &server.command_connections[route.connection_index];
                connection.forward(call.on(route), connection.is_down());
            }
            None => self.unrouted_connection.forward(call.on(route), false),
        }
    }

    fn request_refresh(&self) {
        self.woken.notify_one();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.woken.notify_one();
    }
}

/// Redirects of a call between two refreshes. `wait_deadline` limits the total time.
const REDIRECTS_MAX: u8 = 4;
/// Refreshes with an older claim after which it is accepted, because the Cluster was created again.
const OLDER_MAX: u32 = 8;

#[cfg(test)]
mod tests;
