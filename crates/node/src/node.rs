//! The node: what all shards and the server API share. A facade over registry, broker and the broadcast router.
//! In: API methods with values and `now` → out: `Notice`s in the inboxes of the shards, positions, counts.
//! Uses: `registry`, `broker`, `presence`, `deliver`, `channel`. Never: sockets, sessions, HTTP.
//! Change here: the parts of a node. Its methods live in `node/`, per-connection behaviour in `hub/` and `command/`.

mod backends;
mod control_commands;
mod peers;
mod revocations;
mod users;
mod verbs;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fanwire_auth::{KeyCounters, KeySource, OptionsError, Verifier};
use fanwire_broker::{Broker, Deliver, MemoryBroker, MemoryPresence, Presence};
use fanwire_telemetry::{Burst, LogThrottle, RefusalEvent};
use uuid::Uuid;

use crate::broadcast::Prepare;
use crate::channel::NamespaceId;
use crate::clock::Clock;
use crate::deliver::BroadcastRouter;
use crate::hooks::Hooks;
use crate::meters::{Meters, Summaries};
use crate::notice::{Inbox, Notice};
use crate::options::{Namespace, Options};
use crate::recovery::Unrecovered;
use crate::registry::Registry;
use crate::registry::ShardId;
use crate::revocation::RevocationTable;
use crate::settings::{CurrentSettings, NodeSettings};
use crate::user_statuses::UserStatuses;
use fanwire_cluster::Cluster;

pub use backends::Page;
pub use revocations::RevocationError;
use revocations::SharedRevocations;
pub use verbs::Counts;

/// One running node: options, channel rules, keys, registry, broker and presence. No sockets; time is a parameter.
///
/// The table in ARCHITECTURE.md lists the locks and their order.
pub struct Node {
    /// Options at the start, for what a reload does not change.
    options: Options,
    settings: CurrentSettings,
    clock: Clock,
    registry: Arc<Registry>,
    router: Arc<BroadcastRouter>,
    broker: Arc<dyn Broker>,
    presence: Arc<dyn Presence>,
    cluster: Arc<Cluster>,
    user_statuses: UserStatuses,
    revocations: RevocationTable,
    shared_revocations: OnceLock<SharedRevocations>,
    /// A change of another node did not fit into the table; logged by the next tick.
    has_full_table: AtomicBool,
    /// Logs once that a restart forgets the table.
    forgets_revocations: Once,
    hooks: OnceLock<Hooks>,
    summaries: Summaries,
    event_seq: AtomicU64,
    started_at: Instant,
    log_throttle: LogThrottle,
    refusal_throttle: LogThrottle,
}

/// The level at which a refusal is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalLevel {
    /// One line for this many refusals of a kind.
    Info(u64),
    Debug,
}

impl RefusalLevel {
    /// Level debug, if such lines are written.
    pub(crate) fn of_debug() -> Option<Self> {
        tracing::enabled!(tracing::Level::DEBUG).then_some(Self::Debug)
    }

    /// The number of refusals, at level info.
    pub fn count(self) -> Option<u64> {
        match self {
            Self::Info(count) => Some(count),
            Self::Debug => None,
        }
    }
}

impl Node {
    /// A node with the memory broker. Reads the clock once, to relate instants to Unix time.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn new(options: Options) -> Result<Arc<Self>, OptionsError> {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = unix.as_millis().try_into().unwrap_or(u64::MAX);
        Self::starting_at(options, Instant::now(), unix_ms)
    }

    /// [`new`](Self::new) with a given clock: instant `now` is `unix_ms` (Unix time in milliseconds).
    ///
    /// # Errors
    /// The first invalid option.
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

    /// [`starting_at`](Self::starting_at) with the broker that `make` creates for the node's router.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn with_broker(
        options: Options,
        now: Instant,
        unix_ms: u64,
        make: impl FnOnce(Arc<dyn Deliver>) -> Arc<dyn Broker>,
    ) -> Result<Arc<Self>, OptionsError> {
        Self::with_backends(options, now, unix_ms, make, Arc::new(MemoryPresence::new()))
    }

    /// [`with_broker`](Self::with_broker) with another store of presence.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn with_backends(
        options: Options,
        now: Instant,
        unix_ms: u64,
        make: impl FnOnce(Arc<dyn Deliver>) -> Arc<dyn Broker>,
        presence: Arc<dyn Presence>,
    ) -> Result<Arc<Self>, OptionsError> {
        let settings = NodeSettings::new(options.clone())?;
        let registry = Arc::new(Registry::new());
        let router = Arc::new(BroadcastRouter::new(Arc::clone(&registry), &options.channel));
        Ok(Arc::new(Self {
            settings: CurrentSettings::new(settings),
            clock: Clock::new(now, unix_ms),
            broker: make(Arc::clone(&router) as _),
            registry,
            router,
            presence,
            cluster: Arc::new(Cluster::new(Uuid::new_v4().to_string())),
            user_statuses: UserStatuses::default(),
            revocations: RevocationTable::default(),
            shared_revocations: OnceLock::new(),
            has_full_table: AtomicBool::new(false),
            forgets_revocations: Once::new(),
            hooks: OnceLock::new(),
            summaries: Summaries::default(),
            event_seq: AtomicU64::new(0),
            started_at: now,
            log_throttle: LogThrottle::default(),
            refusal_throttle: LogThrottle::for_refusals(),
            options,
        }))
    }

    /// Counts a refusal, by a client command or the server API. `None` if it is not logged.
    pub fn log_level(&self, refusal: RefusalEvent<'_>, now: Instant) -> Option<RefusalLevel> {
        match self.refusal_throttle.record_event(refusal, now) {
            Some(repeats) => Some(RefusalLevel::Info(repeats.count())),
            None => RefusalLevel::of_debug(),
        }
    }

    /// Warns once a minute that users connect who cannot have a personal channel.
    pub(crate) fn log_no_personal_channel(&self, now: Instant) {
        if let Some(repeats) = self.log_throttle.record("personal channel", now) {
            tracing::warn!(
                "a user id contains channel.user_boundary or channel.user_separator: the connection has no personal channel, \
                 because other users could subscribe to it{repeats}"
            );
        }
    }

    /// Says at level info why subscribers were not recovered, each cause once in a while.
    pub(crate) fn log_unrecovered(&self, cause: Unrecovered, now: Instant) {
        if let Some(repeats) = self.log_throttle.record(cause.name(), now) {
            tracing::info!(
                cause = cause.name(),
                "a subscriber was not recovered: {}{repeats}",
                cause.explanation()
            );
        }
    }

    /// Says once in a while that a refresh failed.
    pub(crate) fn log_failed_refresh(&self, cause: &str, now: Instant) {
        if let Some(repeats) = self.log_throttle.record("refresh", now) {
            tracing::warn!(%cause, "a refresh failed: the connection goes on, and it is tried again in a minute{repeats}");
        }
    }

    /// Adds the inbox of a further shard; before the first connection. At most 65,536 shards.
    ///
    /// # Panics
    /// At one more.
    pub fn attach(&self, inbox: Arc<dyn Inbox>) -> ShardId {
        self.router.attach(inbox)
    }

    /// Sets the shell that prepares every broadcast; before the first connection, and once.
    ///
    /// # Panics
    /// At the second call.
    pub fn prepare_with(&self, prepare: Arc<dyn Prepare>) {
        self.router.prepare_with(prepare);
    }

    /// Sets the functions that decide about client events; before the first connection, and once.
    ///
    /// # Panics
    /// At the second call.
    pub fn hook(&self, hooks: Hooks) {
        assert!(self.hooks.set(hooks).is_ok(), "hooks are set once");
    }

    /// The functions that decide about client events; none by default.
    pub(crate) fn hooks(&self) -> &Hooks {
        self.hooks.get_or_init(Hooks::default)
    }

    /// How long a connection continues after its expiry time: until the client refreshes it, or no time with a refresh hook.
    pub(crate) fn expired_close_delay(&self) -> Duration {
        if self.hooks().refresh.is_some() {
            return Duration::ZERO;
        }
        self.options.client.expired_close_delay
    }

    /// Sets the source of the metrics that `info` returns on every node; once.
    ///
    /// # Panics
    /// At the second call.
    pub fn summarise(&self, meters: Arc<dyn Meters>) {
        self.summaries.read_from(meters);
    }

    /// Sets the number of the last event about clients that was made for a backend; a snapshot contains it.
    pub fn set_event_seq(&self, seq: u64) {
        self.event_seq.store(seq, Relaxed);
    }

    /// Whether a channel has subscribers on this node.
    pub fn has_listeners(&self, channel: &str) -> bool {
        self.registry.has_listeners(channel)
    }

    /// The options at the start.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Replaces the settings: keys of tokens, namespaces, limits and permissions. Commands and calls of the API that begin
    /// from now on follow the new ones; subscriptions keep the options with which they began. `prepare` is called with
    /// each namespace before that.
    ///
    /// # Errors
    /// An invalid option, or more namespaces added since the start than [`NamespaceId::count`]. Then nothing has changed.
    pub fn reload(
        &self,
        options: Options,
        prepare: impl Fn(NamespaceId, &Namespace),
    ) -> Result<(), OptionsError> {
        self.settings.reload(options, |settings| {
            self.router.deliver_as(settings.namespaces())?;
            settings.namespaces().for_each(|(id, namespace)| prepare(id, namespace));
            Ok(())
        })
    }

    /// The names of namespaces by id, those that a reload removed included; "" for channels without one.
    pub fn namespace_names(&self) -> Vec<String> {
        self.settings().names().to_vec()
    }

    /// Sets Unix time at `now`, by the system's clock. Tokens are checked with the time of the last call, so each
    /// shard calls this with every turn. After a step every shard sets the timers of its sessions again.
    pub fn synchronise(&self, now: Instant, unix_ms: u64) {
        if self.clock.synchronise(now, unix_ms) {
            self.router.send_to_all_shards(&Notice::ClockStep);
        }
    }

    /// Periodic work, once a second: broker and presence free what has expired, metrics are summed up, the other
    /// nodes get this node's state, and silent nodes are forgotten.
    pub fn tick(&self, now: Instant) {
        for Burst { kind, count, causes, users, addresses } in self.refusal_throttle.ended(now) {
            tracing::info!(count, kind, causes, users, addresses, "refusals that were not logged");
        }
        self.broker.sweep(now);
        self.presence.sweep(now);
        self.tick_revocations(now);
        self.user_statuses.sweep(self.clock.unix(now));
        self.summaries.tick(now, self.options.info_metrics_aggregate_interval);
        if self.cluster.tick(now) {
            self.introduce(now);
        }
    }

    /// The inbox of a shard.
    pub(crate) fn inbox(&self, shard: ShardId) -> Arc<dyn Inbox> {
        self.router.inbox(shard)
    }

    /// Sets the fetcher of `client.token.jwks_public_endpoint`, and that of `client.subscription_token`. Until then
    /// their keys are unknown.
    pub fn fetch_keys_with(
        &self,
        connection: Arc<dyn KeySource>,
        subscription: Arc<dyn KeySource>,
    ) {
        let settings = self.settings();
        for (verifier, source) in settings.verifiers().zip([connection, subscription]) {
            verifier.fetch_with(source);
        }
    }

    /// Counters of JWKS fetches, for tokens of both kinds.
    pub fn key_counters(&self) -> KeyCounters {
        self.settings().verifiers().map(Verifier::key_counters).sum()
    }

    /// The namespace that a channel's name has, whether it exists or not; "" without one.
    pub fn namespace_of<'a>(&self, channel: &'a str) -> &'a str {
        self.settings().channels.namespace_name(channel)
    }

    /// The settings of now; a command keeps them until its end.
    pub(crate) fn settings(&self) -> Arc<NodeSettings> {
        self.settings.read()
    }

    /// Replaces settings that a reload has made obsolete.
    pub(crate) fn refresh_settings(&self, settings: &mut Arc<NodeSettings>) {
        self.settings.refresh(settings);
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }
}
