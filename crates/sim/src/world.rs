//! The simulated world: hosts, the engine, links, clients and backends, and one event after another.
//! In: a plan → out: the verdict of the checkers, the story, the hash of all events.
//! Uses everything of this crate on one thread. Never: real time, other chance than that of the seed.
//! Changed here: which events there are. Hosts and engine meet in `world/carry.rs`, processes start and end in `world/processes.rs`.

mod carry;
mod checkers;
mod commands;
mod events;
mod faults;
mod processes;
mod samples;
mod snapshots;
mod takeover;

use std::hash::{Hash as _, Hasher as _};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_protocol::Disconnect;
use parking_lot::Mutex;

use crate::backend::{Backend, CommandResult, Job};
use crate::chance::SeededRandom;
use crate::client::{Action, Seen, SimulatedClient, Timer};
use crate::engine::ports::{Finish, GiveUp, Run};
use crate::engine::{Engine, Outgoing};
use crate::host::{Effect, Host, SentEffect};
use crate::network::{LinkId, Network};
use crate::plan::{SeedPlan, UNIX_MS};
use crate::scheduler::Scheduler;
use crate::story::{EventHash, Story};
use crate::traffic::{TrafficCounts, count};
use checkers::Checkers;
pub use checkers::Violation;
use events::SentEvents;

/// The process that an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub host: usize,
    pub incarnation: u64,
}

/// Something that happens.
pub enum WorldEvent {
    /// A call arrives at the engine.
    Call { origin: Origin, generation: u64, number: u64, run: Run },
    /// Its answer arrives at the host.
    Answer { origin: Origin, generation: u64, number: u64, finish: Finish },
    /// The calls that were sent at a time took too long.
    GiveUp { origin: Origin, sent_at: Duration },
    /// A call that waited for a subscription took too long.
    Expire { origin: Origin, give_up: GiveUp },
    /// A host tries to open its PUB/SUB connection.
    OpenFeed(Origin),
    /// Its connection for calls can be made again.
    Reconnect(Origin),
    /// A request about a name arrives at the engine: to follow it, with a number, or not any more.
    FollowName { origin: Origin, generation: u64, name: String, number: Option<u64> },
    /// A message of PUB/SUB arrives at a host.
    Feed(Outgoing),
    /// A shard has a turn.
    Turn { origin: Origin, shard: usize },
    /// A node has a second of its periodic work.
    Tick(Origin),
    /// A host closes a connection, whose client is to connect to another one.
    SendAway { origin: Origin, connection: u64 },
    /// A host makes a snapshot of its memory engine.
    Snapshot(Origin),
    /// A host looks which channels are occupied.
    Watch(Origin),
    /// Events arrive at the backend.
    Events(Box<SentEvents>),
    /// The backend has answered.
    EventsAnswered { origin: Origin, count: usize },
    /// A hook of the backend has decided.
    Decided { origin: Origin, decide: Finish },
    /// A client opens a connection.
    Open { connection: u64, host: usize, client: usize },
    /// It sends a frame.
    Frame { connection: u64, frame: Bytes },
    /// It closes its connection.
    CloseByClient(u64),
    /// A frame arrives at a client.
    Message { connection: u64, client: usize, message: Bytes },
    /// The end of its connection arrives at a client.
    Closed { connection: u64, client: usize, disconnect: Option<Disconnect> },
    /// A timer of a client is due.
    Timer { client: usize, timer: Timer },
    /// A backend has something to do.
    Job(Box<Job>),
    /// A fault of the plan begins.
    FaultBegins(usize),
    /// It ends.
    FaultEnds(usize),
    /// Once a second checkers look at the whole.
    Look,
}

pub struct World {
    pub(crate) plan: SeedPlan,
    pub(crate) now: Duration,
    base: Instant,
    queue: Scheduler<WorldEvent>,
    pub(crate) network: Network<WorldEvent>,
    pub(crate) hosts: Vec<Host>,
    /// Events that wait for processes that stand still, by host.
    frozen: Vec<Vec<WorldEvent>>,
    pub(crate) engine: Engine,
    pub(crate) clients: Vec<SimulatedClient>,
    pub(crate) backend: Backend,
    /// Absent while they look at the world.
    checkers: Option<Box<Checkers>>,
    pub(crate) story: Story,
    traffic: TrafficCounts,
    /// Hosts of the connections that clients opened, which are numbered from 1 on.
    connection_hosts: Vec<usize>,
    /// How many events have happened.
    events: u64,
    random: SeededRandom,
    pub(crate) client_faults_until: Vec<Duration>,
    pub(crate) engine_faults_until: Duration,
    /// When the engine lost data.
    pub(crate) losses: Vec<DataLoss>,
    /// Last time that streams lost their ends and kept their epochs; zero = never.
    pub(crate) ends_lost_at: Duration,
    /// The engine accepts no connection before.
    engine_up_at: Duration,
    /// Seconds since a feed carried nothing, by host.
    feed_silence: Vec<u32>,
    /// Decisions of hooks, to be scheduled.
    hook_calls: Arc<Mutex<Vec<HookCall>>>,
    results: Arc<Mutex<Vec<CommandResult>>>,
}

/// The engine lost what it had, or what was written within `lag`; it could be reached again from `until` on.
pub(crate) struct DataLoss {
    pub(crate) at: Duration,
    pub(crate) lag: Duration,
    pub(crate) until: Duration,
}

/// A decision that a hook of the backend makes later.
pub struct HookCall {
    pub host: usize,
    pub after: Duration,
    pub decide: Finish,
}

impl WorldEvent {
    /// Whether a client caused it at its host.
    fn is_of_client(&self) -> bool {
        matches!(self, Self::Open { .. } | Self::Frame { .. } | Self::CloseByClient(_))
    }

    /// Adds its time, its kind, and what hosts and clients send each other.
    fn hash_into(&self, hasher: &mut EventHash, at: Duration) {
        hasher.write_u64(at.as_nanos() as u64);
        mem::discriminant(self).hash(hasher);
        match self {
            Self::Message { connection, message: bytes, .. }
            | Self::Frame { connection, frame: bytes } => {
                hasher.write_u64(*connection);
                hasher.write(bytes);
            }
            Self::Closed { connection, disconnect, .. } => {
                hasher.write_u64(*connection);
                hasher.write_u64(disconnect.as_ref().map_or(0, |it| u64::from(it.code)));
            }
            Self::Call { origin, number, .. } | Self::Answer { origin, number, .. } => {
                hasher.write_u64(origin.host as u64);
                hasher.write_u64(*number);
            }
            _ => {}
        }
    }
}

/// How a run ended.
pub struct Verdict {
    pub violation: Option<Violation>,
    /// A hash of all events.
    pub hash: u64,
    pub story: Story,
    pub traffic: TrafficCounts,
    pub events: u64,
}

impl World {
    pub fn new(plan: SeedPlan, keeps_story: bool) -> Self {
        let random = SeededRandom::new(plan.seed);
        let numbers = 0..plan.clients;
        let clients =
            numbers.map(|it| SimulatedClient::new(it, &plan, random.fork("client", it as u64)));
        let engine = Engine::new(random.fork("engine", 0));
        Self {
            now: Duration::ZERO,
            base: Instant::now(),
            queue: Scheduler::new(random.fork("order", 0)),
            network: Network::new(random.fork("network", 0), plan.tuning.engine_delay_ms),
            hosts: (0..plan.hosts).map(|_| Host::default()).collect(),
            frozen: (0..plan.hosts).map(|_| Vec::new()).collect(),
            engine,
            clients: clients.collect(),
            backend: Backend::new(&plan, random.fork("backend", 0)),
            checkers: Some(Box::new(Checkers::new(&plan))),
            story: Story::new(keeps_story),
            traffic: TrafficCounts::new(plan.busy),
            connection_hosts: Vec::new(),
            events: 0,
            random: random.fork("world", 0),
            client_faults_until: vec![Duration::ZERO; plan.clients],
            engine_faults_until: Duration::ZERO,
            losses: Vec::new(),
            ends_lost_at: Duration::ZERO,
            engine_up_at: Duration::ZERO,
            feed_silence: vec![0; plan.hosts],
            hook_calls: Arc::default(),
            results: Arc::default(),
            plan,
        }
    }

    /// Plays the plan to its end, or until a promise is broken.
    pub fn run(mut self) -> Verdict {
        self.begin();
        while self.step() {}
        if !is_broken(&self) {
            // Nothing is late any more: what clients and the engine know has to be the same.
            self.now = self.plan.end();
            let now = self.instant();
            self.check(|checkers, world| checkers.finish(world, now));
        }
        let violation = self.checkers.and_then(|mut it| it.take_violation());
        let hash = self.story.hash();
        Verdict { violation, hash, story: self.story, traffic: self.traffic, events: self.events }
    }

    /// Plays the next event. Returns whether there was one before the end.
    fn step(&mut self) -> bool {
        let next = self.queue.take_next().filter(|(at, _)| *at <= self.plan.end());
        let Some((at, event)) = next.filter(|_| !is_broken(self)) else { return false };
        self.now = at;
        self.events += 1;
        if self.story.keeps_lines() {
            samples::take_samples(self);
        }
        event.hash_into(self.story.hasher(), at);
        self.happen(event);
        true
    }

    fn begin(&mut self) {
        (0..self.hosts.len()).for_each(|host| self.start_host(host));
        for client in 0..self.clients.len() {
            let at = self.random.between_ms(0, 3000);
            self.queue.at(at, WorldEvent::Timer { client, timer: Timer::Connect });
        }
        let faults = self.plan.faults.iter().enumerate();
        for (number, fault) in faults {
            self.queue.at(fault.at, WorldEvent::FaultBegins(number));
            self.queue.at(fault.at + fault.lasts, WorldEvent::FaultEnds(number));
        }
        for (at, job) in self.backend.first_jobs() {
            self.schedule_job(at, job);
        }
        self.queue.at(Duration::from_secs(1), WorldEvent::Look);
    }

    pub(crate) fn schedule_job(&mut self, at: Duration, job: Job) {
        self.queue.at(at, WorldEvent::Job(Box::new(job)));
    }

    /// Shows something to the checkers.
    fn check(&mut self, show: impl FnOnce(&mut Checkers, &mut Self)) {
        let mut checkers = self.checkers.take().expect("no checker shows anything to others");
        show(&mut checkers, self);
        self.checkers = Some(checkers);
    }

    /// The host of a connection; `None` for 0, which is none.
    pub(crate) fn host_of(&self, connection: u64) -> Option<usize> {
        let number = connection.checked_sub(1)?;
        self.connection_hosts.get(number as usize).copied()
    }

    pub(crate) fn instant(&self) -> Instant {
        self.base + self.now
    }

    pub(crate) fn instant_of(&self, at: Duration) -> Instant {
        self.base + at
    }

    /// The Unix time of a host's wall clock.
    pub(crate) fn unix_ms(&self, host: usize) -> u64 {
        let here = UNIX_MS + self.now.as_millis() as u64;
        here.strict_add_signed(self.hosts[host].clock_offset_ms)
    }

    fn happen(&mut self, event: WorldEvent) {
        let waits = |host: &usize| {
            self.hosts[*host].is_frozen || self.hosts[*host].is_paused && event.is_of_client()
        };
        if let Some(host) = self.host_of_event(&event).filter(waits) {
            return self.frozen[host].push(event);
        }
        match event {
            WorldEvent::Call { origin, generation, number, run } => {
                self.execute(origin, generation, number, run);
            }
            WorldEvent::Answer { origin, generation, number, finish } => {
                self.answer(origin, generation, number, finish);
            }
            WorldEvent::GiveUp { origin, sent_at } => self.give_up(origin, sent_at),
            WorldEvent::Expire { origin, give_up } => {
                give_up();
                self.settle(origin.host);
            }
            WorldEvent::OpenFeed(origin) => self.open_feed(origin),
            WorldEvent::Reconnect(origin) => carry::reconnect(self, origin),
            WorldEvent::FollowName { origin, generation, name, number } => {
                if self.is_running(origin) {
                    self.engine.follow_name(origin.host, generation, &name, number);
                    self.send_outgoing();
                }
            }
            WorldEvent::Feed(outgoing) => self.receive_feed(outgoing),
            WorldEvent::Turn { origin, shard } => self.turn(origin, shard),
            WorldEvent::Tick(origin) => self.tick(origin),
            WorldEvent::SendAway { origin, connection } => {
                processes::send_away(self, origin, connection)
            }
            WorldEvent::Snapshot(origin) => snapshots::save(self, origin),
            WorldEvent::Watch(origin) => events::watch(self, origin),
            WorldEvent::Events(sent) => events::receive(self, &sent),
            WorldEvent::EventsAnswered { origin, count } => events::answered(self, origin, count),
            WorldEvent::Decided { origin, decide } => {
                decide();
                self.settle(origin.host);
            }
            WorldEvent::Open { connection, host, client } => self.accept(connection, host, client),
            WorldEvent::Frame { connection, frame } => self.receive_frame(connection, frame),
            WorldEvent::CloseByClient(connection) => {
                let now = self.instant();
                if let Some(host) = self.host_of(connection)
                    && let Some(process) = &mut self.hosts[host].process
                {
                    process.close(connection, now);
                    self.settle(host);
                }
            }
            WorldEvent::Message { connection, client, message } => {
                let busy = self.now < self.plan.busy;
                let actions = self.clients[client].receive(connection, message, self.now, busy);
                self.act(client, actions);
            }
            WorldEvent::Closed { connection, client, disconnect } => {
                self.story.tell(
                    self.now,
                    format_args!("c{client} connection {connection} closed: {disconnect:?}"),
                );
                let actions = self.clients[client].closed(connection, disconnect.as_ref());
                self.act(client, actions);
            }
            WorldEvent::Timer { client, timer } => {
                let busy = self.now < self.plan.busy;
                let actions = self.clients[client].timer(timer, self.now, busy);
                self.act(client, actions);
            }
            WorldEvent::Job(job) => self.work(*job),
            WorldEvent::FaultBegins(number) => faults::begin(self, number),
            WorldEvent::FaultEnds(number) => faults::end(self, number),
            WorldEvent::Look => {
                if self.now >= self.plan.busy {
                    for client in 0..self.clients.len() {
                        let actions = self.clients[client].stay();
                        self.act(client, actions);
                    }
                }
                self.check(|checkers, world| checkers.look(world));
                self.queue.at(self.now + Duration::from_secs(1), WorldEvent::Look);
            }
        }
    }

    /// The host of an event that has to wait while the process of the host stands still.
    fn host_of_event(&self, event: &WorldEvent) -> Option<usize> {
        match event {
            WorldEvent::Answer { origin, .. }
            | WorldEvent::GiveUp { origin, .. }
            | WorldEvent::Expire { origin, .. }
            | WorldEvent::Turn { origin, .. }
            | WorldEvent::SendAway { origin, .. }
            | WorldEvent::Tick(origin)
            | WorldEvent::Watch(origin)
            | WorldEvent::EventsAnswered { origin, .. }
            | WorldEvent::OpenFeed(origin)
            | WorldEvent::Reconnect(origin)
            | WorldEvent::Decided { origin, .. } => Some(origin.host),
            WorldEvent::Feed(outgoing) => Some(outgoing.host),
            WorldEvent::Open { host, .. } => Some(*host),
            WorldEvent::Frame { connection, .. } | WorldEvent::CloseByClient(connection) => {
                self.host_of(*connection)
            }
            _ => None,
        }
    }

    /// Does what a client decided, and shows checkers what it saw.
    fn act(&mut self, client: usize, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Open => self.open_connection(client),
                Action::Send { connection, frame } => {
                    self.send(LinkId::ToHost(client), WorldEvent::Frame { connection, frame });
                }
                Action::Close { connection } => {
                    self.send(LinkId::ToHost(client), WorldEvent::CloseByClient(connection));
                }
                Action::After(delay, timer) => {
                    self.queue.at(self.now + delay, WorldEvent::Timer { client, timer });
                }
                Action::See(seen) => {
                    if let Seen::Received { .. } = *seen {
                        count(&mut self.traffic.deliveries, self.now);
                    }
                    self.story.tell(self.now, format_args!("c{client} {seen}"));
                    self.check(|checkers, world| checkers.see(world, client, &seen));
                }
            }
        }
    }

    fn open_connection(&mut self, client: usize) {
        let host = choose_host(self, client);
        self.connection_hosts.push(host);
        let connection = self.connection_hosts.len() as u64;
        self.story.tell(self.now, format_args!("c{client} opens {connection} to h{host}"));
        self.send(LinkId::ToHost(client), WorldEvent::Open { connection, host, client });
        let actions = self.clients[client].opened(connection, self.now);
        self.act(client, actions);
    }

    /// Sends an event over a link, if it is not cut.
    fn send(&mut self, link: LinkId, event: WorldEvent) {
        if let Some((at, event)) = self.network.send(link, event, self.now) {
            self.queue.at(at, event);
        }
    }

    /// Sends again what waited in links that were cut.
    pub(crate) fn mend_links(&mut self, links: Vec<LinkId>) {
        for link in links {
            for event in self.network.mend(link) {
                self.send(link, event);
            }
        }
    }

    /// Sends to clients what a host sent.
    fn send_to_clients(&mut self, sent: Vec<SentEffect>) {
        let queue_max = self.plan.tuning.queue_max;
        let now = self.instant();
        for SentEffect { connection, client, effect } in sent {
            let link = LinkId::ToClient(client);
            let event = match effect {
                Effect::Message(message) if self.network.count_waiting(link) < queue_max => {
                    WorldEvent::Message { connection, client, message }
                }
                Effect::Message(_) => {
                    let host = self.host_of(connection).expect("a client has opened it");
                    if !self.hosts[host].end_slow(connection, now) {
                        continue;
                    }
                    let disconnect = Some(Disconnect::SLOW);
                    WorldEvent::Closed { connection, client, disconnect }
                }
                Effect::Disconnect(disconnect) => {
                    WorldEvent::Closed { connection, client, disconnect: Some(disconnect) }
                }
                Effect::Hold | Effect::Release => continue,
            };
            self.send(link, event);
        }
    }
}

/// The host to which a balancer sends a client: any, whether its process runs or not; or where nodes send clients away, the one with
/// the fewest that accepts them.
fn choose_host(world: &mut World, client: usize) -> usize {
    let any = world.clients[client].random.index(world.hosts.len());
    if world.plan.tuning.rebalance.is_none() {
        return any;
    }
    let accepts = |host: &usize| {
        let process = world.hosts[*host].process.as_ref();
        process.is_some_and(|it| !it.is_leaving && !it.refuses_clients)
    };
    let hosts = (0..world.hosts.len()).filter(accepts);
    hosts.min_by_key(|host| count_clients(world, *host)).unwrap_or(any)
}

/// The clients that have a connection to a host, as far as they know.
pub(crate) fn count_clients(world: &World, host: usize) -> usize {
    let is_there =
        |it: &&SimulatedClient| it.is_open() && world.host_of(it.connection) == Some(host);
    world.clients.iter().filter(is_there).count()
}

/// Whether a promise is broken.
fn is_broken(world: &World) -> bool {
    world.checkers.as_ref().is_some_and(|it| it.violation().is_some())
}
