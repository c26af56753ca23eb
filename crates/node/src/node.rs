//! The node: what all shards and the server API share. A facade over registry, broker and the broadcast router.
//! In: API methods with values and `now` → out: `Notice`s in the inboxes of the shards, positions, counts.
//! Uses: `registry`, `broker`, `presence`, `deliver`, `channel`. Never: sockets, sessions, HTTP.
//! Changed here: how a node is put together of its parts. Its methods live in `node/`, per-connection behaviour in `hub/` and `command/`.

mod channels;
mod connections;
mod diagnostics;
mod log;
mod maps;
mod parts;
mod peers;
pub mod questions;
mod readers;
mod rebalancing;
mod revocations;
mod shared_polls;
mod usage;
mod users;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fanwire_auth::{KeyCounters, KeySource, OptionsError, Verifier};
use fanwire_broker::{
    Chance, Deliver, MemoryBroker, MemoryPresence, MemoryUserStatuses, SystemChance,
};
use fanwire_cluster::Cluster;
use fanwire_policy::DebugList;
use fanwire_policy::channel::NamespaceId;
use fanwire_policy::hooks::Hooks;
use fanwire_policy::options::{Namespace, Options};
use fanwire_policy::{CurrentSettings, NodeSettings};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::deliver::BroadcastRouter;
use crate::meters::{Meters, Summaries};
use crate::notice::{Inbox, Notice};
use crate::registry::{Registry, ShardId};
pub(crate) use channels::CheckedChannel;
pub use channels::{ChannelPublisher, Channels, Page};
pub use connections::ConnectionCommands;
pub use diagnostics::{Diagnostics, KeepClosedLog};
pub use log::{NodeLog, RefusalLevel};
pub use maps::{Maps, is_key};
pub use parts::{BrokerFactory, NodeParts};
pub use peers::{save_peers, take_over_peers};
pub use readers::{ReadError, ReadPermit, ReadRequest};
pub use rebalancing::Rebalancing;
pub use revocations::{RevocationError, Revocations};
pub use shared_polls::SharedPolls;
pub(crate) use shared_polls::is_polled;
pub use usage::{NamespaceUsage, TenantUsage};
pub use users::Users;

/// One running node: options, channel rules, keys, registry, broker and presence. No sockets; time is a parameter.
///
/// The table in ARCHITECTURE.md lists the locks and their order.
pub struct Node {
    /// Options at the start, for what a reload does not change.
    options: Options,
    channels: Channels,
    users: Users,
    revocations: Arc<Revocations>,
    shared_polls: Arc<SharedPolls>,
    cluster: Arc<Cluster>,
    rebalancing: Rebalancing,
    diagnostics: Diagnostics,
    chance: Arc<dyn Chance>,
    hooks: Hooks,
    log: NodeLog,
    summaries: Arc<Summaries>,
    event_seq: AtomicU64,
    started_at: Instant,
}

/// Totals of the whole node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections whose connect succeeded.
    pub connections: usize,
    /// Distinct user ids among them; the empty one counts as one.
    pub users: usize,
    /// Channels with at least one subscriber.
    pub channels: usize,
    /// Subscriptions of all connections.
    pub subscriptions: usize,
    /// Approximate bytes of histories in this process.
    pub history_bytes: usize,
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
        Self::with_parts(options, now, unix_ms, NodeParts::default())
    }

    /// [`starting_at`](Self::starting_at) with these parts.
    ///
    /// # Errors
    /// The first invalid option.
    pub fn with_parts(
        options: Options,
        now: Instant,
        unix_ms: u64,
        parts: NodeParts,
    ) -> Result<Arc<Self>, OptionsError> {
        let mut hooks = parts.hooks;
        let chance = parts.chance.unwrap_or_else(|| Arc::new(SystemChance));
        let settings = Arc::new(CurrentSettings::new(NodeSettings::new(options.clone())?));
        let registry = Arc::new(Registry::new());
        let router = BroadcastRouter::new(Arc::clone(&registry), &options.channel, parts.prepare);
        let router = Arc::new(router);
        let deliver: Arc<dyn Deliver> = Arc::<BroadcastRouter>::clone(&router);
        let broker = match parts.make_broker {
            Some(make) => make(deliver),
            None => Arc::new(MemoryBroker::with_chance(
                deliver,
                options.channel.history_memory_max,
                &*chance,
            )),
        };
        let presence = parts.presence.unwrap_or_else(|| Arc::new(MemoryPresence::new()));
        let memory_statuses = || Arc::new(MemoryUserStatuses::default()) as _;
        let uid = parts.uid.unwrap_or_else(|| chance.id().to_string());
        let cluster = Arc::new(Cluster::new(uid));
        let client = &options.client;
        let debug_list = Arc::new(DebugList::of(&options.debug_for));
        let summaries = Arc::<Summaries>::default();
        let hot_channels = Arc::default();
        let shared_polls = SharedPolls::new(
            hooks.shared_poll_refresh.take(),
            Arc::clone(&settings),
            Arc::clone(&router),
            chance.id().simple().to_string().chars().take(EPOCH_CHARS).collect(),
        );
        Ok(Arc::new(Self {
            shared_polls,
            users: Users {
                registry: Arc::clone(&registry),
                user_statuses: parts.user_statuses.unwrap_or_else(memory_statuses),
                settings: Arc::clone(&settings),
            },
            diagnostics: Diagnostics {
                router: Arc::clone(&router),
                cluster: Arc::clone(&cluster),
                recorder_memory_max: options.recorder_memory_max,
                broker: Arc::clone(&broker),
                settings: Arc::clone(&settings),
                hot_channels: Arc::clone(&hot_channels),
                debug_list: Arc::clone(&debug_list),
                chance: Arc::clone(&chance),
                summaries: Arc::clone(&summaries),
                keep_closed_log: parts.keep_closed_log,
            },
            rebalancing: Rebalancing {
                cluster: Arc::clone(&cluster),
                registry: Arc::clone(&registry),
                name: options.name.clone(),
                rebalance: Mutex::default(),
            },
            revocations: Revocations::new(Arc::clone(&router), parts.revocations),
            channels: Channels {
                usage: TenantUsage::new(Arc::clone(&settings), &options),
                settings,
                clock: Clock::new(now, unix_ms),
                broker,
                hot_channels,
                debug_list,
                registry,
                router,
                presence,
                presence_ttl: client.presence_ttl,
                left_out: AtomicU64::new(0),
                sets_times: !client.channel_position_max_time_lag.is_zero(),
            },
            cluster,
            chance,
            hooks,
            log: NodeLog::default(),
            summaries,
            event_seq: AtomicU64::new(0),
            started_at: now,
            options,
        }))
    }

    /// Adds the inbox of a further shard; before the first connection. At most 65,536 shards.
    ///
    /// # Panics
    /// If one more is attached.
    pub fn attach(&self, inbox: Arc<dyn Inbox>) -> ShardId {
        self.channels.router.attach(inbox)
    }

    /// The functions that decide about client events; none by default.
    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Sets the source of the metrics that `info` returns on every node. The last one counts.
    pub fn summarise(&self, meters: Arc<dyn Meters>) {
        self.summaries.read_from(meters);
    }

    /// Sets the number of the last event about clients that was made for a backend; a snapshot contains it.
    pub fn set_event_seq(&self, seq: u64) {
        self.event_seq.store(seq, Relaxed);
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
        let debug_for = options.debug_for.clone();
        let address_limit = options.client.address_connections;
        self.channels.settings.reload(options, |settings| {
            self.channels.router.deliver_as(settings.namespaces())?;
            settings.namespaces().for_each(|(id, namespace)| prepare(id, namespace));
            Ok(())
        })?;
        self.diagnostics.debug_list.configure(&debug_for);
        self.channels.usage.addresses().configure(address_limit);
        Ok(())
    }

    /// The names of namespaces by id, those that a reload removed included; "" for channels without one.
    pub fn namespace_names(&self) -> Vec<String> {
        self.settings().names().to_vec()
    }

    /// Sets Unix time at `now`, by the system's clock. Tokens are checked with the time of the last call, so each
    /// shard calls this with every turn. After a step every shard sets the timers of its sessions again.
    pub fn synchronise(&self, now: Instant, unix_ms: u64) {
        if self.channels.clock.synchronise(now, unix_ms) {
            self.channels.router.send_to_all_shards(&Notice::ClockStep);
        }
    }

    /// All that a running node does without being asked, once a second: it learns Unix time, then [`tick`](Self::tick). An
    /// idle shard does not read the clock.
    pub fn run_periodic_work(&self, now: Instant, unix_ms: u64) {
        self.synchronise(now, unix_ms);
        self.tick(now);
    }

    /// Periodic work, once a second: broker and presence free what has expired, metrics are summed up, the other
    /// nodes get this node's state, and silent nodes are forgotten.
    pub fn tick(&self, now: Instant) {
        let unix = self.unix(now);
        self.log.tick(now);
        self.channels.broker.sweep(now);
        self.channels.presence.sweep(now);
        self.revocations.tick(now, unix, &self.cluster, &self.log);
        self.users.tick(unix);
        self.diagnostics.hot_channels().tick(now);
        self.diagnostics.debug_list.tick(unix);
        self.summaries.tick(now, self.options.info_metrics_aggregate_interval);
        self.channels.usage.tick(&self.cluster, self.clock(), now);
        if self.cluster.tick(now) {
            self.introduce(now);
        }
    }

    /// The inbox of a shard.
    pub(crate) fn inbox(&self, shard: ShardId) -> Arc<dyn Inbox> {
        self.channels.router.inbox(shard)
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
        self.channels.settings.read()
    }

    /// Replaces settings that a reload has made obsolete.
    pub(crate) fn refresh_settings(&self, settings: &mut Arc<NodeSettings>) {
        self.channels.settings.refresh(settings);
    }

    /// The source of ids and of the spread of timers.
    pub(crate) fn chance(&self) -> &dyn Chance {
        &*self.chance
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.channels.clock
    }

    /// Unix time in seconds at an instant.
    pub fn unix(&self, now: Instant) -> u64 {
        self.channels.clock.unix(now)
    }

    /// The id of this node among the others.
    pub fn uid(&self) -> &str {
        self.cluster.uid()
    }

    /// Totals of now.
    pub fn counts(&self) -> Counts {
        let (channels, subscriptions) = self.channels.registry.channel_counts();
        let (users, connections) = self.channels.registry.user_counts();
        let history_bytes = self.channels.broker.history_bytes();
        Counts { connections, users, channels, subscriptions, history_bytes }
    }

    /// Its channels: publications, history, presence.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }

    /// Commands for existing connections.
    pub fn connections(&self) -> ConnectionCommands<'_> {
        ConnectionCommands {
            channels: &self.channels,
            cluster: &self.cluster,
            rebalancing: &self.rebalancing,
        }
    }

    /// The statuses of users.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// Blocked users and revoked tokens.
    pub fn revocations(&self) -> &Arc<Revocations> {
        &self.revocations
    }

    /// Records and counts of the nodes.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// The other nodes.
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Log lines that repeat.
    pub fn log(&self) -> &NodeLog {
        &self.log
    }

    /// Users and channels of this node with their connections and subscribers.
    pub(crate) fn registry(&self) -> &Registry {
        &self.channels.registry
    }
}

/// Characters of the epoch of versionless shared polls, as in Centrifugo.
const EPOCH_CHARS: usize = 8;
