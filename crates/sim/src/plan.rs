//! What a seed stands for: how many hosts and clients, which options, which habits, which faults and when (swarm testing).
//! In: a seed → out: a plan, of which parts can be left out without a change of the others.
//! Pure. Never: events; `world.rs` plays the plan.
//! Changed here: which mixtures happen. A new kind of fault is drawn in `faults.rs`.

mod named;

use std::time::Duration;

use fanwire_node::options::{MapMode, MapOptions, Namespace, Rate, RecoveryMode, SubscriptionType};
use fanwire_node::{Options, RebalanceOptions};

use crate::chance::SeededRandom;
use crate::faults::{self, PlannedFault, Targets};

/// Everything that a run is made of.
#[derive(Clone, Debug)]
pub struct SeedPlan {
    pub seed: u64,
    pub hosts: usize,
    pub shards: usize,
    pub clients: usize,
    /// Channels of each kind.
    pub channels: usize,
    /// How many of a hundred channels a client subscribes to.
    pub subscribed: u64,
    /// How long clients, backends and faults are busy.
    pub busy: Duration,
    /// Milliseconds between two publications of backends, on average.
    pub publish_every_ms: u64,
    /// Without the model engine there is one host, with the memory engine of the product.
    pub has_engine: bool,
    pub habits: Habits,
    pub tuning: Tuning,
    pub faults: Vec<PlannedFault>,
}

/// What clients and backends do, in percent of their chances to do it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Clients that come and go.
    pub reconnects: u64,
    /// Clients that publish.
    pub publishes: u64,
    /// Clients that end and begin subscriptions.
    pub resubscribes: u64,
    /// Clients that call rpc.
    pub calls: u64,
    /// Clients that ask for a history or who is present.
    pub questions: u64,
    /// Clients that never refresh their token.
    pub lazy: u64,
    /// Commands of backends for connections.
    pub commands: u64,
    /// Blocks and invalidations of backends.
    pub blocks: u64,
    /// Seconds without publications in a channel, now and then.
    pub silences: u64,
    /// Blocks last longer, and their users try to connect all the time.
    pub insists: bool,
}

/// Options of the nodes that differ between seeds.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    pub ping_interval: Duration,
    pub pong_timeout: Duration,
    pub position_check_delay: Duration,
    pub position_max_time_lag: Duration,
    pub presence_ttl: Duration,
    pub history_size: usize,
    pub history_ttl: Duration,
    pub history_meta_ttl: Duration,
    pub concurrency: usize,
    pub token_lifetime: u64,
    /// Seconds of a subscription token; 0 = it never ends.
    pub subscription_lifetime: u64,
    /// A hook of the backend decides about subscribes.
    pub has_subscribe_hook: bool,
    /// Hosts tell a backend which channels are occupied.
    pub tells_channels: bool,
    /// Messages that wait for a client that reads nothing, before its connection ends with 3008.
    pub queue_max: usize,
    /// There are map channels; the model engine has none.
    pub has_maps: bool,
    /// Some clients ask for deltas.
    pub has_deltas: bool,
    /// How long a channel waits to deliver publications together.
    pub batch_delay: Duration,
    /// Longest delay of a message between a host and the engine, in milliseconds.
    pub engine_delay_ms: u64,
    /// Nodes send clients to others, and the balancer counts connections.
    pub rebalance: Option<RebalanceOptions>,
    /// How often the memory engine is saved; `None` keeps nothing over a restart.
    pub snapshot_interval: Option<Duration>,
    /// How many of a hundred clients send nothing but a connect request.
    pub unidirectional: u64,
}

impl SeedPlan {
    /// The plan of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let mut plan = Self::of_older_seed(seed);
        let mut random = SeededRandom::new(seed).fork("wide", 0);
        plan.tuning.engine_delay_ms = *random.pick(&[2, 2, 20, 60]);
        plan.tuning.has_deltas = random.percent(25);
        plan.tuning.batch_delay = Duration::from_millis(*random.pick(&[0, 0, 0, 300]));
        plan.habits.insists = random.percent(50);
        plan.habits.questions = *random.pick(&[0, 10, 50]);
        plan.tuning.subscription_lifetime = *random.pick(&[0, 15, 40]);
        if random.percent(30) {
            plan.tuning.position_check_delay = Duration::from_secs(600);
        }
        if random.percent(60) {
            plan.faults = faults::draw_moments(plan.targets(), &mut random);
            plan.habits.blocks = *random.pick(&[0, 20, 60]);
            if plan.has_engine && random.fork("short", 0).percent(25) {
                let mut short = random.fork("losses", 0);
                let targets = plan.targets();
                plan.faults = if random.fork("names", 0).percent(30) {
                    faults::draw_moved_names(targets, &mut short)
                } else {
                    faults::draw_short_losses(targets, &mut short)
                };
                plan.tuning.position_check_delay = Duration::from_secs(600);
            }
        } else if random.percent(25) {
            let longer = |fault: &mut PlannedFault| fault.lasts = (fault.lasts * 3).min(FAULT_MAX);
            plan.faults.iter_mut().for_each(longer);
        }
        if plan.has_engine && random.percent(20) {
            plan.faults.extend(faults::deploy(plan.hosts, plan.busy, &mut random));
        }
        plan.draw_moves();
        plan.draw_store();
        plan.draw_restarts();
        plan.faults.sort_by_key(|fault| fault.at);
        plan
    }

    /// Draws whether clients move to other hosts, and hosts to other programs, and which clients send no commands.
    fn draw_moves(&mut self) {
        let mut random = SeededRandom::new(self.seed).fork("moves", 0);
        let targets = self.targets();
        if self.hosts > 1 && random.percent(25) {
            let min_age = Duration::from_secs(*random.pick(&[2, 10]));
            let rate = *random.pick(&[1, 5]);
            self.tuning.rebalance =
                Some(RebalanceOptions { enabled: random.percent(70), rate, min_age });
            if random.percent(40) {
                self.faults = faults::flap(targets, &mut random).collect();
            }
        }
        // With events and Redis no server is handed over.
        if !self.tuning.tells_channels && random.percent(30) {
            self.faults.extend(faults::takeovers(targets, &mut random));
        }
        if !self.tuning.has_subscribe_hook && random.percent(25) {
            self.tuning.unidirectional = *random.pick(&[30, 100]);
        }
    }

    /// Draws whether the store is one whose streams may lose their ends in the same epoch. No publication of it is safe after that, so nothing
    /// else happens in such a run.
    fn draw_store(&mut self) {
        let mut random = SeededRandom::new(self.seed).fork("store", 0);
        if !self.has_engine || !random.percent(3) {
            return;
        }
        self.channels = 1;
        self.publish_every_ms = *random.pick(&[200, 800]);
        self.habits = Habits::default();
        self.tuning = Tuning {
            position_check_delay: Duration::from_secs(*random.pick(&[4, 8])),
            position_max_time_lag: Duration::ZERO,
            engine_delay_ms: self.tuning.engine_delay_ms,
            presence_ttl: self.tuning.presence_ttl,
            history_size: self.tuning.history_size,
            ..Tuning::calm()
        };
        self.faults = faults::draw_lost_ends(self.targets(), &mut random);
    }

    /// Draws whether the only host stops or crashes and starts again, and how often it has saved its engine.
    fn draw_restarts(&mut self) {
        let mut random = SeededRandom::new(self.seed).fork("restarts", 0);
        if self.has_engine || !random.percent(70) {
            return;
        }
        let seconds = *random.pick(&[0, 1, 5, 600]);
        self.tuning.snapshot_interval = (seconds > 0).then_some(Duration::from_secs(seconds));
        self.faults.extend(faults::restarts(self.targets(), &mut random));
    }

    /// The plan of a seed that was named before there were far engines, users that insist, and deploys.
    pub fn of_older_seed(seed: u64) -> Self {
        let mut random = SeededRandom::new(seed).fork("plan", 0);
        let has_engine = random.percent(85);
        let hosts = if has_engine { 1 + random.index(3) } else { 1 };
        let busy = Duration::from_secs(40 + random.below(80));
        let clients = 3 + random.index(10);
        let tuning = Tuning::draw(&mut random, has_engine);
        let mut plan = Self {
            seed,
            hosts,
            shards: 1 + random.index(2),
            clients,
            channels: 1 + random.index(3),
            subscribed: 60,
            busy,
            publish_every_ms: *random.pick(&[50, 200, 800, 3000]),
            has_engine,
            habits: Habits::draw(&mut random),
            tuning,
            faults: Vec::new(),
        };
        let targets = plan.targets();
        plan.faults = faults::draw(targets, &mut random.fork("faults", 0));
        let mut overlap = random.fork("overlap", 0);
        if overlap.percent(30) {
            // Most faults of the past needed two things at once, and a backend that commands while it lasts.
            plan.faults = faults::draw_overlapping(targets, &mut overlap);
            plan.habits.commands = plan.habits.commands.max(60);
            plan.habits.blocks = *overlap.pick(&[0, 20, 60]);
        }
        plan
    }

    fn targets(&self) -> Targets {
        let Self { hosts, clients, has_engine, busy, .. } = *self;
        Targets { hosts, clients, has_engine, busy }
    }

    /// Leaves out the last clients, with the faults that are about them.
    pub fn leave_out_clients(&mut self, count: usize) {
        self.clients -= count;
        let clients = self.clients;
        self.faults.retain(|fault| fault.client().is_none_or(|client| client < clients));
    }

    /// The options of every node.
    pub fn options(&self) -> Options {
        let tuning = &self.tuning;
        let mut options = Options { version: "sim".to_owned(), ..Options::default() };
        options.recorder_memory_max = 0;
        options.client.token.hmac_secret_key = SECRET.into();
        options.client.ping_interval = tuning.ping_interval;
        options.client.pong_timeout = tuning.pong_timeout;
        options.client.expired_close_delay = EXPIRED_CLOSE_DELAY;
        options.client.expired_sub_close_delay = EXPIRED_CLOSE_DELAY;
        options.client.channel_position_check_delay = tuning.position_check_delay;
        options.client.channel_position_max_time_lag = tuning.position_max_time_lag;
        options.client.presence_ttl = tuning.presence_ttl;
        options.client.presence_update_interval = tuning.presence_ttl / 3;
        options.client.concurrency = tuning.concurrency;
        options.client.refusal_rate = Rate::default();
        let open = Namespace {
            allow_subscribe_for_client: true,
            allow_publish_for_subscriber: true,
            allow_history_for_subscriber: true,
            allow_presence_for_subscriber: true,
            ..Namespace::default()
        };
        let stream = Namespace {
            name: "stream".to_owned(),
            presence: true,
            join_leave: true,
            force_recovery: true,
            history_size: tuning.history_size,
            history_ttl: tuning.history_ttl,
            history_meta_ttl: tuning.history_meta_ttl,
            allowed_delta_types: vec![Namespace::FOSSIL.to_owned()],
            delta_publish: tuning.has_deltas,
            ..open.clone()
        };
        let mut batching = stream.delivery.clone();
        batching.batch.max_delay = tuning.batch_delay;
        let stream = Namespace { delivery: batching, ..stream };
        let cache = Namespace {
            name: "cache".to_owned(),
            force_recovery_mode: RecoveryMode::Cache,
            allow_tags_filter: true,
            presence: false,
            ..stream.clone()
        };
        options.channel.without_namespace = Namespace { name: String::new(), ..stream.clone() };
        let plain = Namespace { name: "plain".to_owned(), presence: true, ..open };
        let map = Namespace {
            name: "map".to_owned(),
            subscription_type: SubscriptionType::Map,
            history_size: 0,
            map: self.map_options(),
            ..plain.clone()
        };
        options.channel.namespaces = vec![stream, cache, plain, map];
        options
    }

    fn map_options(&self) -> MapOptions {
        let tuning = &self.tuning;
        MapOptions {
            mode: MapMode::Recoverable,
            key_ttl: Duration::from_secs(12),
            stream_size: tuning.history_size,
            stream_ttl: tuning.history_ttl,
            default_page_size: 3,
            min_page_size: 3,
            allow_publish_for_subscriber: true,
            ..MapOptions::default()
        }
    }

    /// The channels, by kind. The names of the last kind need a subscription token.
    pub fn channel_names(&self) -> Vec<String> {
        let maps = self.tuning.has_maps.then_some("map:");
        let kinds = ["stream:", "cache:", "plain:", "$private"].into_iter().chain(maps);
        let of_kind = |kind: &'static str| (0..self.channels).map(move |it| format!("{kind}{it}"));
        kinds.flat_map(of_kind).collect()
    }

    /// The end of the run: after the busy time everything that is late may come, and everything that is dead expires.
    pub fn end(&self) -> Duration {
        let check = self.tuning.position_check_delay.min(CHECK_DELAY_AWAITED);
        self.busy + self.tuning.presence_ttl + check + Duration::from_secs(40)
    }
}

impl Habits {
    fn draw(random: &mut SeededRandom) -> Self {
        let mut draw = || *random.pick(&[0, 0, 5, 20, 60]);
        Self {
            reconnects: draw(),
            publishes: draw(),
            resubscribes: draw(),
            calls: draw(),
            lazy: draw(),
            commands: draw(),
            blocks: draw(),
            silences: draw(),
            insists: false,
            questions: 0,
        }
    }
}

impl Tuning {
    fn draw(random: &mut SeededRandom, has_engine: bool) -> Self {
        let seconds = Duration::from_secs;
        let ping_interval = seconds(*random.pick(&[9, 25]));
        // A stream that ends while its clients are away is a rare thing, and common in one seed of four.
        let is_short = random.percent(25) && !has_engine;
        Self {
            ping_interval,
            pong_timeout: seconds(*random.pick(&[3, 8])),
            position_check_delay: seconds(*random.pick(&[4, 15, 40, 600])),
            position_max_time_lag: seconds(*random.pick(&[0, 0, 0, 2])),
            presence_ttl: seconds(*random.pick(&[15, 30])),
            history_size: *random.pick(&[5, 20, 200]),
            // Steps of the clock while a host is down count like time: some minutes.
            history_ttl: seconds(if is_short { 2 } else { 900 }),
            history_meta_ttl: seconds(if is_short { 3 } else { 3600 }),
            concurrency: *random.pick(&[0, 2]),
            token_lifetime: *random.pick(&[20, 60, 3600]),
            subscription_lifetime: 0,
            has_subscribe_hook: random.percent(30),
            tells_channels: random.fork("events", 0).percent(30),
            queue_max: *random.fork("queue", 0).pick(&[15, 100, 1000]),
            has_maps: !has_engine && random.fork("maps", 0).percent(70),
            ..Self::calm()
        }
    }
}

/// The key of all tokens.
pub const SECRET: &str = "secret";
/// `client.expired_close_delay` of all nodes.
pub const EXPIRED_CLOSE_DELAY: Duration = Duration::from_secs(5);
/// `events.vacated_delay` of all nodes.
pub const VACATED_DELAY: Duration = Duration::from_secs(2);
/// A fault that lasts longer than others ends after this time.
const FAULT_MAX: Duration = Duration::from_secs(20);
/// A run does not wait for checks that come later than this.
const CHECK_DELAY_AWAITED: Duration = Duration::from_secs(40);
/// Unix time at the start of a run, in milliseconds.
pub const UNIX_MS: u64 = 1_800_000_000_000;
/// Part of the names of channels that the hook of the backend refuses.
pub const CLOSED: &str = "closed";
