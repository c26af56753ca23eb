//! Processes: their start and end, their turns, ticks and pauses, the connections that clients open to them.
//! In: events of a host → out: what its node does, sent to clients and the engine.
//! Uses `Process`. Never: rules of the node.
//! Changed here: what a server does around its node. How the engine is reached is `carry.rs`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fanwire_broker::{Answer, ChangeMarks, MemoryEngine, SnapshotClock};
use fanwire_events::WATCH_INTERVAL;
use fanwire_node::hooks::{Hook, Hooks, Rejection, SubscribeGrant};
use fanwire_node::{Node, NodeParts};
use fanwire_protocol::Error;

use super::carry::{probe_feed, running};
use super::events::new_events;
use super::{HookCall, Origin, World, WorldEvent};
use crate::chance::SeededChance;
use crate::engine::NODES;
use crate::engine::ports::EnginePort;
use crate::host::{Process, Reporter, parts_with_engine};
use crate::memory::parts_in_memory;
use crate::network::LinkId;
use crate::plan::CLOSED;
use crate::traffic::count;

impl World {
    /// A process starts, if none runs.
    pub(crate) fn start_host(&mut self, number: usize) {
        if self.hosts[number].process.is_some() {
            return;
        }
        self.hosts[number].incarnation += 1;
        self.hosts[number].started_at = self.now;
        forget_waiting(self, number);
        let incarnation = self.hosts[number].incarnation;
        self.story.tell(self.now, format_args!("h{number} starts {incarnation}"));
        let mut process = new_process(self, number, None);
        process.feed.follow(NODES);
        self.hosts[number].process = Some(process);
        let origin = self.origin(number);
        if self.plan.has_engine {
            self.queue.at(self.now, WorldEvent::OpenFeed(origin));
        }
        self.queue.at(self.now + TICK, WorldEvent::Tick(origin));
        if let Some(interval) = self.plan.tuning.snapshot_interval {
            self.queue.at(self.now + interval, WorldEvent::Snapshot(origin));
        }
        if self.plan.tuning.tells_channels {
            self.queue.at(self.now + WATCH_INTERVAL, WorldEvent::Watch(origin));
        }
        self.settle(number);
    }

    /// The hooks of the backend, which decide later.
    fn hooks(&self, host: usize) -> Hooks {
        let mut hooks = Hooks::default();
        let decisions = Arc::clone(&self.hook_calls);
        hooks.rpc = Some(Hook::new(move |event: fanwire_node::hooks::RpcEvent| {
            let (promise, answer) = Answer::later();
            let after = Duration::from_millis(event.method.parse().unwrap_or(0));
            let decide = Box::new(move || promise.keep(Ok(Some(event.data))));
            decisions.lock().push(HookCall { host, after, decide });
            answer
        }));
        if self.plan.tuning.has_subscribe_hook {
            let decisions = Arc::clone(&self.hook_calls);
            hooks.subscribe = Some(Hook::new(move |event: fanwire_node::hooks::SubscribeEvent| {
                let (promise, answer) = Answer::later();
                let is_closed = event.channel.contains(CLOSED);
                let decide = Box::new(move || promise.keep(decided(is_closed)));
                let after = Duration::from_millis(30);
                decisions.lock().push(HookCall { host, after, decide });
                answer
            }));
        }
        hooks
    }

    /// The process ends. Its clients notice it at once, or by what does not come any more.
    pub(crate) fn kill(&mut self, number: usize, is_silent: bool) {
        self.story.tell(self.now, format_args!("h{number} is killed"));
        let Some(process) = self.hosts[number].process.take() else { return };
        forget_waiting(self, number);
        self.engine.close_feed(number);
        if is_silent {
            return;
        }
        for (connection, known) in &process.connections {
            let client = known.client;
            let connection = *connection;
            let event = WorldEvent::Closed { connection, client, disconnect: None };
            self.send(LinkId::ToClient(client), event);
        }
    }

    /// A process that stood still goes on: with everything that came during the pause, in order.
    pub(crate) fn resume_host(&mut self, number: usize) {
        self.hosts[number].is_frozen = false;
        for event in std::mem::take(&mut self.frozen[number]) {
            self.happen(event);
        }
        self.settle(number);
    }

    pub(super) fn tick(&mut self, origin: Origin) {
        let now = self.instant();
        let unix_ms = self.unix_ms(origin.host);
        let Some(process) = running(self, origin).filter(|it| !it.is_leaving) else { return };
        process.node.run_periodic_work(now, unix_ms);
        rebalance(self, origin);
        probe_feed(self, origin.host);
        self.settle(origin.host);
        self.queue.at(self.now + TICK, WorldEvent::Tick(origin));
    }

    pub(super) fn turn(&mut self, origin: Origin, shard: usize) {
        let since_start = self.now;
        let now = self.instant();
        let unix_ms = self.unix_ms(origin.host);
        let Some(process) = running(self, origin) else { return };
        if !process.shards[shard].begin_turn(since_start) {
            return; // an earlier turn took its place
        }
        process.node.synchronise(now, unix_ms);
        let sent = process.turn(shard, now);
        self.send_to_clients(sent);
        self.settle(origin.host);
    }

    /// Schedules the next turn of each shard: soon if there are notices, else when a timer is due.
    pub(super) fn schedule_turns(&mut self, host: usize) {
        let now = self.instant();
        let origin = self.origin(host);
        let delay = self.hosts[host].turn_delay;
        let Some(process) = &mut self.hosts[host].process else { return };
        for shard in 0..process.shards.len() {
            let known = &mut process.shards[shard];
            let soon = self.now + delay + Duration::from_nanos(1);
            if known.has_notices() && known.notices_at.is_none() {
                let at = soon + self.random.between_ms(0, 2);
                known.notices_at = Some(at);
                self.queue.at(at, WorldEvent::Turn { origin, shard });
            }
            let Some(due) = known.next_deadline() else { continue };
            let at = soon.max(self.now + due.saturating_duration_since(now));
            if known.timers_at.is_none_or(|before| before > at) {
                known.timers_at = Some(at);
                self.queue.at(at, WorldEvent::Turn { origin, shard });
            }
        }
    }

    /// A connection arrives at a host; where no process runs, or one that sends its clients away, it is refused.
    pub(super) fn accept(&mut self, connection: u64, host: usize, client: usize) {
        let now = self.instant();
        let sends_commands = !self.clients[client].is_unidirectional;
        match &mut self.hosts[host].process {
            Some(process) if !process.refuses_clients => {
                process.open(connection, client, sends_commands, now);
            }
            _ => {
                let event = WorldEvent::Closed { connection, client, disconnect: None };
                self.send(LinkId::ToClient(client), event);
                return;
            }
        }
        count(&mut self.traffic.connects, self.now);
        self.settle(host);
    }

    pub(super) fn receive_frame(&mut self, connection: u64, frame: Bytes) {
        let Some(host) = self.host_of(connection) else { return };
        let now = self.instant();
        let unix_ms = self.unix_ms(host);
        if self.hosts[host].process.is_some() {
            self.check(|checkers, world| checkers.frame_arrived(connection, world.now));
        }
        let Some(process) = &mut self.hosts[host].process else { return };
        process.node.synchronise(now, unix_ms);
        let sent = process.receive(connection, frame, now);
        self.send_to_clients(sent);
        self.settle(host);
    }
}

/// A new process of a host, with the id of the node for which it goes on.
pub(super) fn new_process(world: &mut World, number: usize, uid: Option<String>) -> Process {
    world.hosts[number].programs += 1;
    let of_node = world.random.fork("node", number as u64 * 1000 + world.hosts[number].programs);
    let chance = Arc::new(SeededChance::new(of_node));
    let mut hooks = world.hooks(number);
    let events = world.plan.tuning.tells_channels.then(new_events);
    if let Some(events) = &events {
        let receivers = events.hooks();
        hooks.report = receivers.report;
        hooks.occupancy = receivers.occupancy;
    }
    let port = world.plan.has_engine.then(Arc::<EnginePort>::default);
    let (parts, memory) = match &port {
        Some(port) => (parts_with_engine(port), None),
        None => {
            let (parts, memory) = memory_of_host(world, number, &chance, uid.is_none());
            (parts, Some(memory))
        }
    };
    let mut options = world.plan.options();
    options.name = format!("h{number}");
    let unix_ms = world.unix_ms(number);
    let parts = NodeParts { hooks, chance: Some(chance), uid, ..parts };
    let node = Node::with_parts(options, world.instant(), unix_ms, parts);
    let mut process = Process::new(node.expect("the options are good"), world.plan.shards, port);
    process.memory = memory.map(|memory| memory());
    process.reporter = events.map(|events| {
        let watch = events.watch(process.node.uid(), unix_ms);
        Reporter { events, watch, is_sending: false }
    });
    let rebalance = world.plan.tuning.rebalance.unwrap_or_default();
    process.node.connections().rebalancing().configure(rebalance);
    process
}

/// The memory engine of a new process, which goes on from the disk at a start.
fn memory_of_host(
    world: &mut World,
    number: usize,
    chance: &Arc<SeededChance>,
    is_start: bool,
) -> (NodeParts, impl FnOnce() -> MemoryEngine + use<>) {
    let clock = SnapshotClock { now: world.instant(), unix_ms: world.unix_ms(number) };
    let has_disk = world.plan.tuning.snapshot_interval.is_some();
    let disk = &mut world.hosts[number].disk;
    let state = disk.restore(clock, &**chance).filter(|_| is_start);
    let (parts, engine) =
        parts_in_memory(Arc::clone(&world.engine.truth), Arc::clone(chance) as _, state);
    let saved = has_disk.then(|| {
        let generation = disk.next_generation();
        (disk.begin_changes(generation), disk.revocations())
    });
    let (changes, revocations) = saved.unzip();
    let parts = NodeParts { revocations: revocations.map(|it| it as _), ..parts };
    let engine = move || {
        let engine = engine();
        let marks = changes.map(|changes| changes as Arc<dyn ChangeMarks>);
        marks.iter().for_each(|marks| engine.broker.mark_changes(marks));
        engine
    };
    (parts, engine)
}

/// Drops the messages that wait for a process that stands still.
fn forget_waiting(world: &mut World, number: usize) {
    world.hosts[number].is_frozen = false;
    world.hosts[number].is_paused = false;
    world.frozen[number].clear();
}

/// Once a second, after the periodic work of the node: some clients leave within the next second.
fn rebalance(world: &mut World, origin: Origin) {
    let now = world.instant();
    let Some(process) = &mut world.hosts[origin.host].process else { return };
    if world.plan.tuning.rebalance.is_none() {
        return;
    }
    let node = Arc::clone(&process.node);
    let rebalancing = node.connections().rebalancing();
    let wanted = rebalancing.step(now);
    process.refuses_clients = rebalancing.refuses_clients(now);
    for connection in wanted.into_iter().flat_map(|wanted| process.departures(wanted, now)) {
        let at = world.now + world.random.between_ms(0, 1000);
        world.queue.at(at, WorldEvent::SendAway { origin, connection });
    }
}

/// A connection ends, whose client is to connect to another host.
pub(super) fn send_away(world: &mut World, origin: Origin, connection: u64) {
    let now = world.instant();
    if let Some(process) = running(world, origin) {
        let sent = process.send_away(connection, now);
        world.send_to_clients(sent);
        world.settle(origin.host);
    }
}

fn decided(is_closed: bool) -> Result<Option<SubscribeGrant>, Rejection> {
    if !is_closed {
        return Ok(Some(SubscribeGrant::default()));
    }
    let error = Error { code: 403, message: "closed".to_owned(), temporary: false };
    Err(Rejection::Error(error))
}

/// Interval of the periodic work of a server.
const TICK: Duration = Duration::from_secs(1);
