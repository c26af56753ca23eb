//! The engine of a node: memory, with a snapshot or without, or Redis, through which it reaches the other nodes.
//! In: the configuration → out: a node with its engine, subscribed to the messages of other nodes; the engine's health.
//! Uses `redis` and the node. Never: publications; the engine passes them to the node directly.
//! Changed here: how an engine is started and stopped. The engine itself lives in `redis`.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fanwire_broker::{
    MemoryBroker, MemoryEngine, MemoryPresence, MemoryUserStatuses, SnapshotClock, SnapshotError,
};
use fanwire_node::{BrokerFactory, Node, NodeParts, PeersError, save_peers, take_over_peers};
use fanwire_redis::{Redis, RedisOptions, RedisTls};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::timeout;

use fanwire_config::{Config, EngineKind};
use fanwire_fanout::unix_ms;
use fanwire_tls::{Tls, TlsOptions};

use crate::error::StartError;
use crate::snapshots::{MadeBroker, Opened, Snapshots};
use crate::takeover::RedisSide;

/// Stores and distributes a node's publications, history and presence.
#[derive(Clone)]
pub(crate) enum Engine {
    Memory(InMemory),
    /// The node shows whether blocks and revocations have been read.
    Redis(Arc<Redis>, Weak<Node>),
}

/// The memory engine of a node.
#[derive(Clone)]
pub(crate) struct InMemory {
    stores: MemoryEngine,
    /// The file that outlives it, if there is one.
    snapshots: Option<Arc<Snapshots>>,
    node: Weak<Node>,
}

impl Engine {
    /// Starts the configured engine and a node on it with these parts; in a takeover with the lock of the snapshot. Does not wait for a
    /// Redis that is unreachable: its connections are retried in the background, and calls fail until one succeeds.
    ///
    /// # Errors
    /// See [`StartError`]. Nothing keeps running after an error.
    pub(crate) async fn start(
        config: &Config,
        parts: NodeParts,
        snapshot_lock: Option<File>,
    ) -> Result<(Self, Arc<Node>), StartError> {
        if config.engine.kind == EngineKind::Memory {
            return start_in_memory(config, parts, snapshot_lock).await;
        }
        let redis = redis_options(config)?;
        let checked = Redis::check(&redis).await;
        if let Err(error) = &checked
            && error.is_permanent()
        {
            return Err(StartError::Engine(error.clone().into()));
        }
        // The connections log it if Redis is unreachable, and retry.
        let redis = Arc::new(Redis::start(&redis, &Handle::current()));
        let takes_over = parts.uid.is_some();
        if takes_over {
            redis.drop_until_mark();
        }
        let broker = redis.clone();
        let make_broker: BrokerFactory = Box::new(move |deliver| {
            broker.deliver_to(deliver);
            broker
        });
        let parts = NodeParts {
            make_broker: Some(make_broker),
            presence: Some(redis.clone()),
            user_statuses: Some(redis.clone()),
            revocations: Some(redis.clone()),
            ..parts
        };
        let node = Node::with_parts(config.node_options(), Instant::now(), unix_ms(), parts)
            .map_err(StartError::Options)?;
        let listener: Weak<Node> = Arc::downgrade(&node);
        node.connections().rebalancing().configure(config.cluster.rebalance);
        node.cluster().join(redis.clone());
        let [node_to_introduce, node_to_ask] = [Weak::clone(&listener), Weak::clone(&listener)];
        let subscribed = redis.subscribe_to_nodes(node.uid(), move |message| {
            listener.upgrade().is_none_or(|node| node.handle_message(message, Instant::now()))
        });
        // The node publishes its presence from the start; other nodes answer once its subscription is active. In a takeover the other
        // program does, until this one runs on.
        tokio::spawn(async move {
            subscribed.await;
            if let Some(node) = node_to_introduce.upgrade().filter(|_| !takes_over) {
                node.introduce(Instant::now());
            }
        });
        if checked.is_ok() {
            // So that the first clients are not refused. Later the server starts and refuses them.
            let _ = timeout(REVOCATIONS_WAIT_MAX, node.revocations().when_known()).await;
        }
        Ok((Self::Redis(redis, node_to_ask), node))
    }

    /// The error of a later start that can be found without a connection, if any.
    pub(crate) fn check(config: &Config) -> Option<StartError> {
        match config.engine.kind {
            EngineKind::Redis => redis_options(config).err(),
            _ => None,
        }
    }

    /// Why calls of the engine fail now, if they do.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(redis, node) => {
                let has_revocations =
                    node.upgrade().is_none_or(|node| node.revocations().are_known());
                let health = redis.health();
                match health.current_error() {
                    Some(error) => Some(error.to_string()),
                    None if health.is_healthy() && has_revocations => None,
                    None if health.is_healthy() => {
                        Some("blocks and revocations have not been read from Redis yet".to_owned())
                    }
                    None => Some("Redis is not connected yet".to_owned()),
                }
            }
        }
    }

    /// Writes the state of the engine for another program, when nothing changes any more. With Redis it is what the node knows of others.
    ///
    /// # Errors
    /// Those of `out`, and of blocks and revocations that Redis has lost.
    pub(crate) fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(node) = self.node() else { return Ok(()) };
        let Self::Memory(InMemory { stores, .. }) = self else {
            let others = save_peers(&node, Instant::now()).ok_or(PeersError::OtherRevocations);
            return out.write_all(&others.map_err(io::Error::other)?);
        };
        let clock = SnapshotClock { now: Instant::now(), unix_ms: unix_ms() };
        let revocations = node.revocations().save(clock.unix_ms / 1000);
        stores.save(&revocations, clock, out)
    }

    /// Goes on with the state that another program saved, before anything uses the engine.
    ///
    /// # Errors
    /// Those of `saved`; `InvalidData` for a state that is not understood. Then nothing has changed.
    pub(crate) fn restore(&self, saved: &mut dyn Read) -> io::Result<()> {
        let Some(node) = self.node() else { return Ok(()) };
        let Self::Memory(InMemory { stores, .. }) = self else {
            let mut others = Vec::new();
            saved.read_to_end(&mut others)?;
            let taken = take_over_peers(&node, &others, Instant::now());
            return taken.map_err(|error| io::Error::new(ErrorKind::InvalidData, error));
        };
        let clock = SnapshotClock { now: Instant::now(), unix_ms: unix_ms() };
        let restored = stores.restore(saved, clock);
        let revocations = restored.map_err(|error| match error {
            SnapshotError::Io(error) => error,
            error => io::Error::new(ErrorKind::InvalidData, error),
        })?;
        node.revocations().take_over(&revocations, clock.now);
        Ok(())
    }

    /// The part of an engine in Redis in a takeover; `None` in memory.
    pub(crate) fn redis_side(&self) -> Option<RedisSide> {
        Some(RedisSide { redis: self.redis()?, node: self.node()? })
    }

    /// Delivers again what others publish, after a takeover: in the new program, or in the old one if it failed.
    pub(crate) fn run_on(&self) {
        if let Some(RedisSide { redis, node }) = self.redis_side() {
            redis.run_on();
            node.introduce(Instant::now());
        }
    }

    pub(crate) fn kind(&self) -> EngineKind {
        match self {
            Self::Memory(_) => EngineKind::Memory,
            Self::Redis(..) => EngineKind::Redis,
        }
    }

    fn node(&self) -> Option<Arc<Node>> {
        match self {
            Self::Memory(in_memory) => in_memory.node.upgrade(),
            Self::Redis(_, node) => node.upgrade(),
        }
    }

    /// The file of the memory engine.
    pub(crate) fn snapshots(&self) -> Option<Arc<Snapshots>> {
        match self {
            Self::Memory(in_memory) => in_memory.snapshots.clone(),
            Self::Redis(..) => None,
        }
    }

    /// `None` for the memory engine.
    pub(crate) fn redis(&self) -> Option<Arc<Redis>> {
        match self {
            Self::Memory(_) => None,
            Self::Redis(redis, _) => Some(Arc::clone(redis)),
        }
    }
}

/// A node whose engine is in memory, and goes on from its snapshot if one is configured.
async fn start_in_memory(
    config: &Config,
    parts: NodeParts,
    snapshot_lock: Option<File>,
) -> Result<(Engine, Arc<Node>), StartError> {
    let options = config.node_options();
    let bytes_max = options.channel.history_memory_max;
    let presence = Arc::new(MemoryPresence::new());
    let user_statuses = Arc::new(MemoryUserStatuses::default());
    let made = Arc::<Mutex<Option<MadeBroker>>>::default();
    let opened = open_snapshots(config, snapshot_lock).await?;
    let revocations = opened.as_ref().and_then(Opened::revocations);
    let make_broker = match opened {
        Some(opened) => opened.factory(made.clone()),
        None => new_broker(bytes_max, made.clone()),
    };
    let parts = NodeParts {
        make_broker: Some(make_broker),
        presence: Some(presence.clone()),
        user_statuses: Some(user_statuses.clone()),
        revocations,
        ..parts
    };
    let node =
        Node::with_parts(options, Instant::now(), unix_ms(), parts).map_err(StartError::Options)?;
    let MadeBroker { broker, snapshots } = made.lock().take().expect("the node makes its broker");
    let stores = MemoryEngine { broker, presence, user_statuses };
    let in_memory = InMemory { stores, snapshots, node: Arc::downgrade(&node) };
    Ok((Engine::Memory(in_memory), node))
}

/// A function that makes a broker without a file, and gives it to `made`.
fn new_broker(bytes_max: usize, made: Arc<Mutex<Option<MadeBroker>>>) -> BrokerFactory {
    Box::new(move |deliver| {
        let broker = Arc::new(MemoryBroker::new(deliver, bytes_max));
        *made.lock() = Some(MadeBroker { broker: broker.clone(), snapshots: None });
        broker
    })
}

async fn open_snapshots(config: &Config, lock: Option<File>) -> Result<Option<Opened>, StartError> {
    let config = config.clone();
    // A large file takes some time, in which others may use this runtime.
    let opening = tokio::task::spawn_blocking(move || Opened::open(&config, lock));
    opening.await.expect("a start does not panic")
}

/// The options of Redis, with TLS for addresses that use it and the lifetime of channels without publications.
fn redis_options(config: &Config) -> Result<RedisOptions, StartError> {
    let settings = &config.engine.redis;
    let mut redis =
        settings.options(|tls| tls.enabled).map_err(|error| StartError::Engine(error.into()))?;
    let sentinels = || redis.addresses.iter().filter_map(|address| address.sentinels.as_ref());
    let mut addresses = redis.clusters.iter().flatten().chain(&redis.addresses);
    let needs_tls = addresses.any(|address| address.is_tls);
    let needs_sentinel_tls =
        sentinels().any(|it| it.addresses.iter().any(|address| address.is_tls));
    let tls = |options: &TlsOptions, key| match Tls::new(options) {
        Ok(tls) => {
            let config = tls.config().clone();
            let server_name = tls.server_name().to_owned();
            Ok(Some(RedisTls { config, server_name }))
        }
        Err(source) => Err(StartError::Tls { key, source }),
    };
    let checked_within = config.client.channel_position_check_delay;
    redis.unpublished_ttl = match checked_within {
        Duration::ZERO => Duration::ZERO, // no check renews them
        delay => delay.saturating_add(CHECK_MARGIN),
    };
    if needs_tls {
        redis.tls = tls(&settings.tls, "engine.redis.tls")?;
    }
    if needs_sentinel_tls {
        redis.sentinel_tls = tls(&settings.sentinel_tls, "engine.redis.sentinel_tls")?;
    }
    Ok(redis)
}

/// Maximum delay between the due time of a position check and its arrival at Redis.
const CHECK_MARGIN: Duration = Duration::from_secs(15);
/// The server listens after this time, and refuses clients until the list has been read.
const REVOCATIONS_WAIT_MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests;
