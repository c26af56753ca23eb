//! The engine of a node: in memory, or Redis with the other nodes behind it.
//! In: the configuration → out: a node with its engine, which hears the others; its health.
//! Uses `brokers` and the node. Never: publications; those go from the engine to the node's door by themselves.
//! Changed here: how an engine is started and stopped. What it does lives in `brokers`.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fanwire_auth::OptionsError;
use fanwire_brokers::redis::{Health, Redis, RedisError, RedisOptions};
use fanwire_node::Node;
use tokio::runtime::Handle;

use crate::config::{Config, EngineKind, TlsOptions};
use crate::tls::{Tls, TlsError};
use fanwire_fanout::unix_ms;

/// What holds a node's publications, history and presence.
#[derive(Clone)]
pub enum Engine {
    Memory,
    Redis(Arc<Redis>),
}

/// Why an engine cannot be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum EngineError {
    /// An option of the node is wrong.
    Options(OptionsError),
    /// A Redis that will not do until somebody changes it or the configuration.
    Redis(RedisError),
    /// A section `tls` cannot be used; `key` is where it stands.
    Tls { key: &'static str, source: TlsError },
}

impl Engine {
    /// Starts the engine that is configured, and the node on it. A Redis that is away is waited for by nobody: connections
    /// are tried until it is there, and until then calls fail.
    ///
    /// # Errors
    /// See [`EngineError`]. Nothing is left running.
    pub async fn start(config: &Config) -> Result<(Self, Arc<Node>), EngineError> {
        let options = config.node.clone();
        if config.engine.kind == EngineKind::Memory {
            return Ok((Self::Memory, Node::new(options).map_err(EngineError::Options)?));
        }
        let redis = options_of_redis(config)?;
        if let Err(error) = Redis::check(&redis).await
            && error.is_permanent()
        {
            return Err(EngineError::Redis(error));
        }
        // One that is away is told of by its connections, which try again.
        let redis = Arc::new(Redis::start(&redis, &Handle::current()));
        let (broker, presence) = (redis.clone(), redis.clone());
        let make = move |door| {
            broker.deliver_to(door);
            broker as _
        };
        let node = Node::with_backends(options, Instant::now(), unix_ms(), make, presence)
            .map_err(EngineError::Options)?;
        let listener: Weak<Node> = Arc::downgrade(&node);
        node.join_cluster(redis.clone());
        let greeter = Weak::clone(&listener);
        let hears = redis.subscribe_to_nodes(node.uid(), move |message| {
            listener.upgrade().is_none_or(|node| node.hear(message, Instant::now()))
        });
        // Should this node not hear yet, it goes on speaking, and is answered by and by.
        tokio::spawn(async move {
            hears.await;
            if let Some(node) = greeter.upgrade() {
                node.introduce(Instant::now());
            }
        });
        Ok((Self::Redis(redis), node))
    }

    /// What stops a start and can be known without a connection; `None` when nothing does.
    pub(crate) fn check(config: &Config) -> Option<EngineError> {
        let is_redis = config.engine.kind == EngineKind::Redis;
        is_redis.then(|| options_of_redis(config).err()).flatten()
    }

    /// Why calls fail now, if they do.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Memory => None,
            Self::Redis(redis) => {
                redis.health().current_error().map(|error| error.to_string()).or_else(|| {
                    (!redis.health().is_healthy()).then(|| "Redis is not connected yet".to_owned())
                })
            }
        }
    }

    /// The state of the connections to Redis.
    pub fn health(&self) -> Option<&Health> {
        match self {
            Self::Memory => None,
            Self::Redis(redis) => Some(redis.health()),
        }
    }
}

/// With what TLS needs, where an address wants it, and with how long a channel that was never published to is remembered.
fn options_of_redis(config: &Config) -> Result<RedisOptions, EngineError> {
    let settings = &config.engine.redis;
    let mut redis = settings.options().map_err(EngineError::Redis)?;
    let sentinels = || redis.addresses.iter().filter_map(|address| address.sentinels.as_ref());
    let mut everywhere = redis.clusters.iter().flatten().chain(&redis.addresses);
    let is_wanted = everywhere.any(|address| address.is_tls);
    let are_sentinels = sentinels().any(|it| it.addresses.iter().any(|address| address.is_tls));
    let tls = |options: &TlsOptions, key| match Tls::new(options) {
        Ok(tls) => Ok(Some(tls.of_redis())),
        Err(source) => Err(EngineError::Tls { key, source }),
    };
    let checked_within = config.node.client.channel_position_check_delay;
    redis.unpublished_ttl = match checked_within {
        Duration::ZERO => Duration::ZERO, // nobody keeps it alive
        delay => delay.saturating_add(CHECK_MARGIN),
    };
    if is_wanted {
        redis.tls = tls(&settings.tls, "engine.redis.tls")?;
    }
    if are_sentinels {
        redis.sentinel_tls = tls(&settings.sentinel_tls, "engine.redis.sentinel_tls")?;
    }
    Ok(redis)
}

/// How much later than it is due a check of positions may reach Redis.
const CHECK_MARGIN: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests;
