//! The node: what all shards and the server API share. A facade over registry, broker and the one router `deliver`.
//! In: API verbs with values and `now` → out: `Notice`s in the inboxes of the shards, positions, counts.
//! Uses: `registry`, `broker`, `presence`, `deliver`, `channel`. Never: sockets, sessions, HTTP.
//! Change here: what a node is made of. Its verbs live in `node/`, per-connection behaviour in `hub/` and `command/`.

mod backends;
mod control_commands;
mod peers;
mod verbs;

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fanwire_auth::{KeyCounters, KeySource, OptionsError, Verifier};
use fanwire_broker::{Broker, Deliver, MemoryBroker, MemoryPresence, Presence};
use fanwire_telemetry::LogThrottle;
use uuid::Uuid;

use crate::broadcast::Prepare;
use crate::channel::Channels;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::deliver::BroadcastRouter;
use crate::meters::{Meters, Summaries};
use crate::notice::{Inbox, Notice};
use crate::options::Options;
use crate::registry::Registry;
use crate::registry::ShardId;

pub use verbs::{Counts, Page};

/// One running node: options, channel rules, keys, registry, broker and presence. No sockets; time comes with the calls.
///
/// Which locks are taken, and which of them while another is held: the table in ARCHITECTURE.md.
pub struct Node {
    options: Options,
    channels: Channels,
    connection_verifier: Verifier,
    /// `None`: the same as for connections.
    subscription_verifier: Option<Verifier>,
    clock: Clock,
    registry: Arc<Registry>,
    router: Arc<BroadcastRouter>,
    broker: Arc<dyn Broker>,
    presence: Arc<dyn Presence>,
    cluster: Cluster,
    summaries: Summaries,
    started_at: Instant,
    log_throttle: LogThrottle,
}

impl Node {
    /// A node with the memory broker. Looks once at the clock, to know how instants relate to Unix time.
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn new(options: Options) -> Result<Arc<Self>, OptionsError> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = unix.as_millis().try_into().unwrap_or(u64::MAX);
        Self::starting_at(options, Instant::now(), unix_ms)
    }

    /// [`new`](Self::new) with a clock of the caller's: at instant `now` it is `unix_ms` (Unix time in milliseconds).
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn starting_at(
        options: Options,
        now: Instant,
        unix_ms: u64,
    ) -> Result<Arc<Self>, OptionsError> {
        let history_bytes_max = options.channel.history_memory_max;
        Self::with_broker(options, now, unix_ms, |router| {
            Arc::new(MemoryBroker::new(router, history_bytes_max))
        })
    }

    /// [`starting_at`](Self::starting_at) with the broker that `make` puts in front of the node's router.
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn with_broker(
        options: Options,
        now: Instant,
        unix_ms: u64,
        make: impl FnOnce(Arc<dyn Deliver>) -> Arc<dyn Broker>,
    ) -> Result<Arc<Self>, OptionsError> {
        Self::with_backends(options, now, unix_ms, make, Arc::new(MemoryPresence::new()))
    }

    /// [`with_broker`](Self::with_broker) with another place for presence.
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub fn with_backends(
        options: Options,
        now: Instant,
        unix_ms: u64,
        make: impl FnOnce(Arc<dyn Deliver>) -> Arc<dyn Broker>,
        presence: Arc<dyn Presence>,
    ) -> Result<Arc<Self>, OptionsError> {
        options.validate()?;
        let client = &options.client;
        let skip_signature = client.insecure_skip_token_signature_verify;
        let verifier = |token, key| Verifier::new(token, key, skip_signature);
        let registry = Arc::new(Registry::new());
        let router = Arc::new(BroadcastRouter::new(Arc::clone(&registry)));
        Ok(Arc::new(Self {
            channels: Channels::new(&options.channel)?
                .with_personal(&client.subscribe_to_user_personal_channel),
            connection_verifier: verifier(&client.token, "client.token")?,
            subscription_verifier: match &client.subscription_token {
                Some(token) => Some(verifier(token, "client.subscription_token")?),
                None => None,
            },
            clock: Clock::new(now, unix_ms),
            broker: make(Arc::clone(&router) as _),
            registry,
            router,
            presence,
            cluster: Cluster::new(Uuid::new_v4().to_string()),
            summaries: Summaries::default(),
            started_at: now,
            log_throttle: LogThrottle::default(),
            options,
        }))
    }

    /// Says once a minute that users connect who cannot have a personal channel.
    pub(crate) fn log_no_personal_channel(&self, now: Instant) {
        if let Some(repeats) = self.log_throttle.happens("personal channel", now) {
            tracing::warn!(
                "a user id contains channel.user_boundary or channel.user_separator: the connection has no personal channel, \
                 because other users could subscribe to it{repeats}"
            );
        }
    }

    /// Adds the inbox of a further shard; before the first connection. At most 65,536 shards.
    ///
    /// # Panics
    /// At one more.
    pub fn attach(&self, inbox: Arc<dyn Inbox>) -> ShardId {
        self.router.attach(inbox)
    }

    /// Lets `prepare` add the shell's part to every broadcast; before the first connection, and once.
    ///
    /// # Panics
    /// At the second call.
    pub fn prepare_with(&self, prepare: Arc<dyn Prepare>) {
        self.router.prepare_with(prepare);
    }

    /// Lets every node of the installation see what `meters` read, as `info` tells it; once.
    ///
    /// # Panics
    /// At the second call.
    pub fn summarise(&self, meters: Arc<dyn Meters>) {
        self.summaries.read_from(meters);
    }

    /// Whether a channel has subscribers on this node.
    pub fn has_listeners(&self, channel: &str) -> bool {
        self.registry.has_listeners(channel)
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// At `now` it is `unix_ms`, by the system's clock. Tokens are checked with the time of the last call, so each shard calls
    /// this with every turn. After a step every shard sets the timers of its sessions again.
    pub fn synchronise(&self, now: Instant, unix_ms: u64) {
        if self.clock.synchronise(now, unix_ms) {
            self.router.send_to_all_shards(&Notice::ClockStep);
        }
    }

    /// What a node does by itself, to be called once a second: broker and presence give memory back of what has expired, its
    /// numbers are summed up, the other nodes hear how it is, and those that are silent are forgotten.
    pub fn tick(&self, now: Instant) {
        self.broker.sweep(now);
        self.presence.sweep(now);
        self.summaries.tick(now, self.options.info_metrics_aggregate_interval);
        if self.cluster.tick(now) {
            self.introduce(now);
        }
    }

    /// Writes to a shard.
    pub(crate) fn inbox(&self, shard: ShardId) -> Arc<dyn Inbox> {
        self.router.inbox(shard)
    }

    /// Who fetches the documents of `client.token.jwks_public_endpoint`, and those of `client.subscription_token`. Until then
    /// their keys are unknown.
    pub fn fetch_keys_with(
        &self,
        connection: Arc<dyn KeySource>,
        subscription: Arc<dyn KeySource>,
    ) {
        self.connection_verifier.fetch_with(connection);
        if let Some(verifier) = &self.subscription_verifier {
            verifier.fetch_with(subscription);
        }
    }

    /// How often documents of keys were fetched, for tokens of both kinds.
    pub fn key_counters(&self) -> KeyCounters {
        let verifiers = [Some(&self.connection_verifier), self.subscription_verifier.as_ref()];
        verifiers.into_iter().flatten().map(Verifier::key_counters).sum()
    }

    pub(crate) fn rules(&self) -> &Channels {
        &self.channels
    }

    pub(crate) fn connection_verifier(&self) -> &Verifier {
        &self.connection_verifier
    }

    pub(crate) fn subscription_verifier(&self) -> &Verifier {
        self.subscription_verifier.as_ref().unwrap_or(&self.connection_verifier)
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}
