//! The Redis engine: publications, history and presence that several nodes share.
//! In: options, a door, a runtime → out: calls that are answered later, and whatever any node publishes, at the door.
//! Uses the crate `redis` and a runtime. Never: sessions; no call blocks, every call ends in bounded time.
//! Change here: which connection a call takes. The ports are in `ports.rs`, commands are made in `stream.rs` and `members.rs`.

mod backoff;
mod clock;
mod cluster;
mod complaint;
mod dial;
mod error;
mod feed;
mod flight;
mod guide;
mod health;
mod keys;
mod line;
mod members;
mod mouth;
mod options;
mod place;
mod ports;
mod reads;
mod record;
mod roll;
mod script;
mod sentinel;
mod server;
mod slot;
mod socket;
mod store;
mod stream;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use fanwire_broker::Deliver;
use tokio::runtime::Handle;

use clock::Clock;
use cluster::Cluster;
use dial::{Dialer, Expected};
use guide::Guided;
use keys::{Keys, Kind};
use mouth::Mouth;
use reads::Reads;
use server::Opener;
use store::{FeedAt, LineAt, Spot, Store};

pub use error::RedisError;
pub use health::Health;
pub use options::{Address, RedisOptions, Sentinels, Wait};
pub use socket::Tls;

/// One engine: its connections to one Redis or one Cluster, or to several that share the channels among them.
pub struct Redis {
    stores: Vec<Store>,
    keys: Keys,
    mouth: Arc<Mouth>,
    health: Arc<Health>,
    reads: Reads,
    started_at: Instant,
    /// When the times of the Redis were asked for last, in seconds since the start.
    asked_at_s: AtomicU64,
}

impl Redis {
    /// Begins to connect and returns at once; what comes of it is seen by [`health`](Self::health). Connections are made
    /// again for as long as this value lives.
    pub fn start(options: &RedisOptions, runtime: &Handle) -> Self {
        if let Some(address) = options.set_apart_by_number() {
            let (db, prefix) = (address.db, &options.prefix);
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
        let mouth = Arc::new(Mouth::new(keys.clone(), Arc::clone(&health)));
        let opener = Opener {
            options: Arc::new(options.clone()),
            mouth: Arc::clone(&mouth),
            health: Arc::clone(&health),
            runtime: runtime.clone(),
            clock: Arc::new(Clock::new()),
        };
        let single = |address| {
            let server = opener.open(address, Expected::Standalone, &Guided::default());
            Store::Single(Box::new(server))
        };
        let cluster =
            |seeds: &Vec<Address>| Store::Cluster(Cluster::start(seeds.clone(), opener.clone()));
        let stores = match &options.clusters[..] {
            [] => options.addresses.iter().map(single).collect(),
            clusters => clusters.iter().map(cluster).collect(),
        };
        let (started_at, asked_at_s) = (Instant::now(), AtomicU64::new(0));
        let reads = Reads::new(keys.clone(), Arc::clone(&health), options.unpublished_ttl);
        Self { stores, keys, mouth, health, reads, started_at, asked_at_s }
    }

    /// Connects to each Redis once and disconnects again; of a Cluster to one of the nodes that are named.
    ///
    /// # Errors
    /// The first [`RedisError`]. One that [is permanent](RedisError::is_permanent) should end a start.
    pub async fn check(options: &RedisOptions) -> Result<(), RedisError> {
        for seeds in &options.clusters {
            Cluster::check(seeds, options).await?;
        }
        let singles = if options.clusters.is_empty() { &options.addresses[..] } else { &[] };
        for address in singles {
            let dialer = Dialer::new(address, options, Arc::new(Clock::new()));
            dialer.dial(script::loads(), drop).await?;
        }
        Ok(())
    }

    /// Delivers whatever is published from now on to `door`; before the first call of a port.
    ///
    /// # Panics
    /// At the second call.
    pub fn deliver_to(&self, door: Arc<dyn Deliver>) {
        self.mouth.deliver_to(door);
    }

    /// Makes this node, which has the id `uid`, hear the others: `listener` gets what they send to all and to it, as it
    /// was given to `Bus::send`, and returns whether it understood. It is called on the task of a connection, so it must be
    /// short. What is returned ends when nothing more is missed, or when that takes too long.
    ///
    /// # Panics
    /// At the second call.
    pub fn hear_nodes<L>(&self, uid: &str, listener: L) -> impl Future<Output = ()> + use<L>
    where
        L: Fn(&[u8]) -> bool + Send + Sync + 'static,
    {
        self.mouth.tell(Box::new(listener));
        let heard = [None, Some(uid)].map(|to| {
            let name = self.keys.of_node(to);
            let feed = self.stores[0].feed(Spot::of_nodes(&name));
            feed.want(&name);
            let (done, answer) = ports::later();
            feed.when_heard(&name, |heard| done(heard.map(drop)));
            answer
        });
        async move {
            for answer in heard {
                let _: Result<(), _> = answer.await;
            }
        }
    }

    /// How the connections are.
    pub fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Asks each Redis for its time, but not more often than every half minute: a clock that was set, or a machine that
    /// slept, would else make members end too early or too late.
    fn keep_time(&self) {
        let now_s = self.started_at.elapsed().as_secs();
        if now_s < self.asked_at_s.load(Relaxed) + TIME_INTERVAL_S {
            return;
        }
        self.asked_at_s.store(now_s, Relaxed);
        self.stores.iter().for_each(Store::keep_time);
    }

    /// Who has a channel, and where there.
    fn place(&self, channel: &str) -> (&Store, Spot) {
        let hash = place::hash(channel);
        let store = &self.stores[place::jump(hash, self.stores.len())];
        (store, Spot::of(channel, hash, &self.keys))
    }

    fn line(&self, channel: &str) -> LineAt<'_> {
        let (store, spot) = self.place(channel);
        store.line(spot)
    }

    /// The feed of a channel, and the name to hear.
    fn feed(&self, channel: &str) -> (FeedAt<'_>, String) {
        let (store, spot) = self.place(channel);
        (store.feed(spot), self.keys.of(Kind::Feed, channel))
    }

    fn ms(&self, channel: &str, now: Instant) -> u64 {
        let (store, spot) = self.place(channel);
        store.ms(spot, now)
    }
}

/// Between two questions for the time.
const TIME_INTERVAL_S: u64 = 30;
