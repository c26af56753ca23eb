//! Processes: their start and end, their turns, ticks and pauses, the connections that clients open to them.
//! In: events of a host → out: what its node does, sent to clients and the engine.
//! Uses `Process`. Never: rules of the node.
//! Changed here: what a server does around its node. How the engine is reached is `carry.rs`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fanwire_broker::{Answer, MemoryBroker};
use fanwire_events::WATCH_INTERVAL;
use fanwire_node::NodeParts;
use fanwire_node::hooks::{Hook, Hooks, Rejection, SubscribeGrant};
use fanwire_protocol::Error;

use super::events::new_events;
use super::{HookCall, Origin, World, WorldEvent};
use crate::chance::SeededChance;
use crate::engine::NODES;
use crate::engine::ports::EnginePort;
use crate::host::{Process, ProcessStart, parts_with_engine};
use crate::memory::Witness;
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
        self.hosts[number].is_frozen = false;
        self.frozen[number].clear();
        let incarnation = self.hosts[number].incarnation;
        self.story.tell(self.now, format_args!("h{number} starts {incarnation}"));
        let of_node = self.random.fork("node", number as u64 * 1000 + incarnation);
        let chance = Arc::new(SeededChance::new(of_node));
        let mut hooks = self.hooks(number);
        let events = self.plan.tuning.tells_channels.then(new_events);
        if let Some(events) = &events {
            let receivers = events.hooks();
            hooks.report = receivers.report;
            hooks.occupancy = receivers.occupancy;
        }
        let (parts, port) = if self.plan.has_engine {
            let port = Arc::<EnginePort>::default();
            (parts_with_engine(&port, hooks, chance), Some(port))
        } else {
            let witnessed = Arc::clone(&self.engine.truth);
            let for_broker: Arc<SeededChance> = Arc::clone(&chance);
            let with_broker = NodeParts::with_broker(move |deliver| {
                let witness = Arc::new(Witness::new(deliver, witnessed));
                Arc::new(MemoryBroker::with_chance(witness, 1 << 30, &*for_broker))
            });
            (NodeParts { hooks, chance: Some(chance), ..with_broker }, None)
        };
        let mut options = self.plan.options();
        options.name = format!("h{number}");
        let start = ProcessStart {
            options,
            shards: self.plan.shards,
            parts,
            port,
            events,
            now: self.instant(),
            unix_ms: self.unix_ms(number),
        };
        self.hosts[number].process = Some(Process::start(start));
        let origin = self.origin(number);
        if self.plan.has_engine {
            if let Some(process) = &mut self.hosts[number].process {
                process.feed.follow(NODES);
            }
            self.queue.at(self.now, WorldEvent::OpenFeed(origin));
        }
        self.queue.at(self.now + TICK, WorldEvent::Tick(origin));
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
        self.hosts[number].is_frozen = false;
        self.frozen[number].clear();
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
        if !self.is_running(origin) {
            return;
        }
        let now = self.instant();
        let unix_ms = self.unix_ms(origin.host);
        match &self.hosts[origin.host].process {
            Some(process) if !process.is_leaving => process.node.run_periodic_work(now, unix_ms),
            _ => return,
        }
        self.probe_feed(origin.host);
        self.settle(origin.host);
        self.queue.at(self.now + TICK, WorldEvent::Tick(origin));
    }

    pub(super) fn turn(&mut self, origin: Origin, shard: usize) {
        if !self.is_running(origin) {
            return;
        }
        let now = self.instant();
        let unix_ms = self.unix_ms(origin.host);
        let Some(process) = &mut self.hosts[origin.host].process else { return };
        if process.shards[shard].turn_at.is_none_or(|due| due > self.now) {
            return; // an earlier turn took its place
        }
        process.shards[shard].turn_at = None;
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
            let Some(due) = process.needs_turn_at(shard, now) else { continue };
            let soon = self.random.between_ms(0, 2) + delay + Duration::from_nanos(1);
            let at = self.now + (due - now).max(soon);
            let scheduled = process.shards[shard].turn_at;
            if scheduled.is_none_or(|before| before > at) {
                process.shards[shard].turn_at = Some(at);
                self.queue.at(at, WorldEvent::Turn { origin, shard });
            }
        }
    }

    /// A connection arrives at a host; where no process runs it is refused.
    pub(super) fn accept(&mut self, connection: u64, host: usize, client: usize) {
        let now = self.instant();
        match &mut self.hosts[host].process {
            Some(process) => process.open(connection, client, now),
            None => {
                let event = WorldEvent::Closed { connection, client, disconnect: None };
                self.send(LinkId::ToClient(client), event);
                return;
            }
        }
        count(&mut self.traffic.connects, self.now);
        self.settle(host);
    }

    pub(super) fn receive_frame(&mut self, connection: u64, frame: Bytes) {
        let Some(host) = self.host_of.get(&connection).copied() else { return };
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

fn decided(is_closed: bool) -> Result<Option<SubscribeGrant>, Rejection> {
    if !is_closed {
        return Ok(Some(SubscribeGrant::default()));
    }
    let error = Error { code: 403, message: "closed".to_owned(), temporary: false };
    Err(Rejection::Error(error))
}

/// Interval of the periodic work of a server.
const TICK: Duration = Duration::from_secs(1);
