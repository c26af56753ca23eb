//! The Redis engine: publications, history and presence that several nodes share.
//! In: options, a `Deliver`, a runtime → out: answers that come later, and the publications of all nodes for the `Deliver`.
//! Uses the crate `redis` and a runtime. Never: sessions; no call blocks, every call ends in bounded time.
//! Changed here: which connection a call takes. The ports are in `ports.rs`, commands are made in `stream.rs`, `members.rs`, `maps.rs` and `revocations.rs`.
#![forbid(unsafe_code)]

mod address;
mod appender;
mod backoff;
mod call;
mod clock;
mod cluster;
mod command_connection;
mod consistent_hash;
mod dial;
mod engine_options;
mod error;
mod error_hint;
mod growing;
mod health;
mod keys;
mod location;
mod maps;
mod members;
mod message_handler;
mod options;
mod own_connection;
mod ports;
mod pubsub_connection;
mod reads;
mod record;
mod redirect;
mod revocations;
mod script;
mod sentinel;
mod server;
mod singleflight;
mod slot;
mod socket;
mod statuses;
mod store;
mod stream;
mod subscription_table;
mod takeover;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use fanwire_broker::Deliver;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use clock::RedisClock;
use cluster::Cluster;
use dial::{Dialer, Expected};
use keys::{KeyKind, Keys};
use location::Location;
use maps::{MapReads, SweepSchedule};
use message_handler::MessageHandler;
use reads::Reads;
use redirect::ClusterRedirects;
use server::ConnectionFactory;
use store::{CommandConnectionRef, PubSubConnectionRef, Store};

pub use address::{Address, Sentinels};
pub use appender::StreamAppender;
pub use engine_options::EngineRedisOptions;
pub use error::RedisError;
pub use health::Health;
pub use options::{RedisOptions, Wait};
pub use own_connection::{OwnConnection, OwnDialer};
pub use socket::RedisTls;
pub use takeover::TakeoverMark;

/// One engine: its connections to one Redis or one Cluster, or to several that share the channels.
pub struct Redis {
    stores: Arc<[Store]>,
    keys: Keys,
    message_handler: Arc<MessageHandler>,
    health: Arc<Health>,
    reads: Reads,
    map_reads: MapReads,
    map_sweeps: Arc<Mutex<SweepSchedule>>,
    started_at: Instant,
    /// Time of the last `TIME` command, in seconds since `started_at`.
    asked_at_s: AtomicU64,
}

impl Redis {
    /// Starts to connect and returns at once; [`health`](Self::health) shows the state. The engine reconnects for as
    /// long as this value lives.
    pub fn start(options: &RedisOptions, runtime: &Handle) -> Self {
        if let Some(address) = options.separated_by_database_only() {
            let db = address.db;
            let prefix = &options.prefix;
            tracing::warn!(
                "database {db} of the Redis at {address} does not separate installations, because PUB/SUB knows no databases: should another one use this Redis, give each a prefix of its own (engine.redis.prefix is {prefix})"
            );
        }
        let seeds = options.clusters.iter().flatten();
        let health = Arc::new(match &options.clusters[..] {
            [] => Health::at(options.addresses.iter()),
            _ => Health::at(seeds),
        });
        let keys = Keys::new(&options.prefix, !options.clusters.is_empty());
        let message_handler = Arc::new(MessageHandler::new(keys.clone(), Arc::clone(&health)));
        let factory = ConnectionFactory {
            options: Arc::new(options.clone()),
            message_handler: Arc::clone(&message_handler),
            health: Arc::clone(&health),
            runtime: runtime.clone(),
            clock: Arc::new(RedisClock::new()),
        };
        let single = |address| {
            let server = factory.open(address, Expected::Standalone, &ClusterRedirects::default());
            Store::Single(Box::new(server))
        };
        let cluster =
            |seeds: &Vec<Address>| Store::Cluster(Cluster::start(seeds.clone(), factory.clone()));
        let stores = match &options.clusters[..] {
            [] => options.addresses.iter().map(single).collect(),
            clusters => clusters.iter().map(cluster).collect(),
        };
        let started_at = Instant::now();
        let asked_at_s = AtomicU64::new(0);
        let reads = Reads::new(keys.clone(), Arc::clone(&health), options.unpublished_ttl);
        let map_reads = MapReads::new(keys.clone(), Arc::clone(&health), options.unpublished_ttl);
        Self {
            stores,
            keys,
            message_handler,
            health,
            reads,
            map_reads,
            map_sweeps: Arc::default(),
            started_at,
            asked_at_s,
        }
    }

    /// Connects to each Redis once and disconnects again; of a Cluster, to one of its configured nodes.
    ///
    /// # Errors
    /// The first [`RedisError`]. One that [is permanent](RedisError::is_permanent) should end a start.
    pub async fn check(options: &RedisOptions) -> Result<(), RedisError> {
        for seeds in &options.clusters {
            Cluster::check(seeds, options).await?;
        }
        let singles = if options.clusters.is_empty() { &options.addresses[..] } else { &[] };
        for address in singles {
            let dialer = Dialer::new(address, options, Arc::new(RedisClock::new()));
            dialer.dial(script::loads(), Arc::new(drop)).await?;
        }
        Ok(())
    }

    /// Delivers everything that is published from now on to `door`. Call it before any call of a port.
    ///
    /// # Panics
    /// At the second call.
    pub fn deliver_to(&self, door: Arc<dyn Deliver>) {
        self.message_handler.deliver_to(door);
    }

    /// Subscribes to the messages of other nodes. `uid` is the id of this node. `listener` gets each message that was
    /// sent to all nodes or to this one, as the sender gave it to `Bus::send`, and returns whether it could decode it.
    /// It runs on the task of a connection, so it must be short. The future ends when the subscriptions are confirmed
    /// or their time is over.
    ///
    /// # Panics
    /// At the second call.
    pub fn subscribe_to_nodes<L>(&self, uid: &str, listener: L) -> impl Future<Output = ()> + use<L>
    where
        L: Fn(&[u8]) -> bool + Send + Sync + 'static,
    {
        self.message_handler.set_node_listener(Box::new(listener));
        let confirmations = [None, Some(uid)].map(|to| {
            let name = self.keys.node_channel(to);
            let pubsub = self.stores[0].pubsub_connection(Location::of_name(&name));
            pubsub.subscribe(&name);
            let (done, answer) = ports::later();
            pubsub.when_subscribed(&name, |confirmations| done(confirmations.map(drop)));
            answer
        });
        async move {
            for answer in confirmations {
                let _: Result<(), _> = answer.await;
            }
        }
    }

    /// The state of the connections.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Asks each Redis for its time, at most once in [`TIME_INTERVAL_S`]. Without that a clock that was set, or a
    /// machine that slept, would make members end too early or too late.
    fn sync_clock(&self) {
        let now_s = self.started_at.elapsed().as_secs();
        if now_s < self.asked_at_s.load(Relaxed) + TIME_INTERVAL_S {
            return;
        }
        self.asked_at_s.store(now_s, Relaxed);
        self.stores.iter().for_each(Store::sync_clock);
    }

    /// The store of a channel, and the location in it.
    fn locate(&self, channel: &str) -> (&Store, Location) {
        let hash = consistent_hash::hash(channel);
        let store = &self.stores[consistent_hash::jump(hash, self.stores.len())];
        (store, Location::of(channel, hash, &self.keys))
    }

    fn command_connection(&self, channel: &str) -> CommandConnectionRef<'_> {
        let (store, location) = self.locate(channel);
        store.command_connection(location)
    }

    /// The PUB/SUB connection of a channel, and the name to subscribe to.
    fn pubsub_connection(&self, channel: &str) -> (PubSubConnectionRef<'_>, String) {
        let (store, location) = self.locate(channel);
        (store.pubsub_connection(location), self.keys.of(KeyKind::PubSub, channel))
    }

    fn ms(&self, channel: &str, now: Instant) -> u64 {
        let (store, location) = self.locate(channel);
        store.ms(location, now)
    }
}

/// Seconds between two `TIME` commands.
const TIME_INTERVAL_S: u64 = 30;
