//! Between hosts and the engine: calls, answers, PUB/SUB, and the connections that carry them.
//! In: requests of nodes, messages of the engine → out: events with the time of their arrival; failures after `IO_TIMEOUT`.
//! Uses the network. Never: what a call does.
//! Changed here: when a connection is lost, and made again.

use std::sync::Arc;
use std::time::Duration;

use super::{HookCall, Origin, World, WorldEvent};
use crate::engine::ports::{Call, EngineRequest, Finish, Run};
use crate::engine::{FeedMessage, NODES, Outgoing};
use crate::host::{Outstanding, Process};
use crate::network::LinkId;
use crate::traffic::count;

impl World {
    /// Whether the process of an event still runs.
    pub(super) fn is_running(&self, origin: Origin) -> bool {
        let host = &self.hosts[origin.host];
        host.process.is_some() && host.incarnation == origin.incarnation
    }

    pub(super) fn origin(&self, host: usize) -> Origin {
        Origin { host, incarnation: self.hosts[host].incarnation }
    }

    /// After anything happened in a host: its requests leave, and its shards get their turns.
    pub(super) fn settle(&mut self, host: usize) {
        let decisions = std::mem::take(&mut *self.hook_calls.lock());
        for HookCall { host, after, decide } in decisions {
            let origin = self.origin(host);
            self.queue.at(self.now + after, WorldEvent::Decided { origin, decide });
        }
        self.report_results();
        self.send_requests(host);
        self.schedule_turns(host);
    }

    fn send_requests(&mut self, host: usize) {
        let origin = self.origin(host);
        loop {
            let Some(process) = &mut self.hosts[host].process else { return };
            let Some(port) = &process.port else { return };
            let requests = port.take_requests();
            if requests.is_empty() {
                return;
            }
            for request in requests {
                self.send_request(origin, request);
            }
        }
    }

    pub(super) fn send_request(&mut self, origin: Origin, request: EngineRequest) {
        let Some(process) = &mut self.hosts[origin.host].process else { return };
        match request {
            EngineRequest::Call(call) => self.send_call(origin, call, false),
            EngineRequest::CallBehind(name, call) => {
                let give_up = Arc::clone(&call.give_up);
                match process.feed.wait(&name, call) {
                    Some(call) => self.send_call(origin, call, true),
                    None => {
                        self.queue.at(self.now + IO_TIMEOUT, WorldEvent::Expire { origin, give_up })
                    }
                }
            }
            EngineRequest::Subscribe(name) => {
                let number = process.feed.follow(&name);
                if let Some(number) = number {
                    self.send_follow(origin, name, Some(number));
                }
            }
            EngineRequest::Unsubscribe(name) => {
                let is_open = process.feed.is_open;
                process.feed.leave(&name).into_iter().for_each(|give_up| give_up());
                if is_open {
                    self.send_follow(origin, name, None);
                }
            }
        }
    }

    pub(super) fn send_follow(&mut self, origin: Origin, name: String, number: Option<u64>) {
        let Some(process) = &self.hosts[origin.host].process else { return };
        let generation = process.feed.generation;
        let event = WorldEvent::FollowName { origin, generation, name, number };
        self.send(LinkId::ToEngine(origin.host), event);
    }

    fn send_call(&mut self, origin: Origin, call: Call, is_behind_feed: bool) {
        let Some(process) = &mut self.hosts[origin.host].process else { return };
        process.last_call += 1;
        let number = process.last_call;
        let generation = process.generation;
        let Call { run, give_up } = call;
        let sent_at = self.now;
        process.outstanding.insert(number, Outstanding { sent_at, give_up, is_behind_feed });
        if process.limited_call.is_none() {
            process.limited_call = Some(sent_at);
            self.queue.at(sent_at + IO_TIMEOUT, WorldEvent::GiveUp { origin, sent_at });
        }
        let event = WorldEvent::Call { origin, generation, number, run };
        self.send(LinkId::ToEngine(origin.host), event);
    }

    /// A call arrives at the engine, which executes it unless its connection is gone.
    pub(super) fn execute(&mut self, origin: Origin, generation: u64, number: u64, run: Run) {
        if running(self, origin).is_none_or(|it| it.generation != generation) {
            return;
        }
        count(&mut self.traffic.commands, self.now);
        self.engine.now = Some(self.instant());
        let finish = run(&mut self.engine);
        self.send_outgoing();
        let event = WorldEvent::Answer { origin, generation, number, finish };
        self.send(LinkId::FromEngine(origin.host), event);
    }

    pub(super) fn answer(&mut self, origin: Origin, generation: u64, number: u64, finish: Finish) {
        let Some(process) = running(self, origin) else { return };
        if process.generation == generation && process.outstanding.remove(&number).is_some() {
            finish();
            self.settle(origin.host);
        }
    }

    /// The time limit of the calls that were sent at a time.
    pub(super) fn give_up(&mut self, origin: Origin, sent_at: Duration) {
        let Some(process) = running(self, origin) else { return };
        if process.limited_call != Some(sent_at) {
            return; // it was set by the program before this one
        }
        let is_late = |_: &u64, it: &mut Outstanding| it.sent_at <= sent_at;
        let late: Vec<_> = process.outstanding.extract_if(.., is_late).collect();
        let next = process.outstanding.values().next().map(|it| it.sent_at);
        process.limited_call = next;
        for (_, outstanding) in late {
            (outstanding.give_up)();
        }
        if let Some(sent_at) = next {
            self.queue.at(sent_at + IO_TIMEOUT, WorldEvent::GiveUp { origin, sent_at });
        }
        self.settle(origin.host);
    }

    /// Sends what the engine published.
    pub(super) fn send_outgoing(&mut self) {
        for outgoing in self.engine.take_outgoing() {
            let host = outgoing.host;
            let is_confirmation = matches!(outgoing.message, FeedMessage::Confirmed { .. });
            let goes_first = is_confirmation && self.hosts[host].confirms_first;
            let link = if goes_first { LinkId::FromEngine(host) } else { LinkId::Feed(host) };
            self.send(link, WorldEvent::Feed(outgoing));
        }
    }

    pub(super) fn receive_feed(&mut self, outgoing: Outgoing) {
        let Outgoing { host, generation, message } = outgoing;
        let now = self.instant();
        let origin = self.origin(host);
        let Some(process) = &mut self.hosts[host].process else { return };
        if !process.feed.is_open || process.feed.generation != generation {
            return;
        }
        let Some(port) = process.port.clone() else { return };
        match message {
            FeedMessage::Confirmed { name, number } => {
                let Some(confirmed) = process.feed.confirm(&name, number) else { return };
                if confirmed.may_have_gap && name != NODES {
                    port.report_possible_gap(&name);
                }
                if name == NODES {
                    process.node.introduce(now);
                }
                for call in confirmed.calls {
                    self.send_call(origin, call, true);
                }
            }
            FeedMessage::OfNode(message) => {
                process.node.handle_message(&message, now);
            }
            message => port.receive(message),
        }
        self.settle(host);
    }

    /// The host notices that its PUB/SUB connection is gone, and opens another one later.
    pub(crate) fn lose_feed(&mut self, host: usize) {
        let delay = self.random.between_ms(50, 400);
        let at = (self.now + delay).max(self.hosts[host].feed_may_open_at);
        let origin = self.origin(host);
        let Some(process) = &mut self.hosts[host].process else { return };
        self.story.tell(self.now, format_args!("h{host} loses its feed"));
        for give_up in process.feed.lose() {
            give_up();
        }
        let is_behind = |_: &u64, it: &mut Outstanding| it.is_behind_feed;
        let behind: Vec<_> = process.outstanding.extract_if(.., is_behind).collect();
        for (_, outstanding) in behind {
            (outstanding.give_up)();
        }
        self.queue.at(at, WorldEvent::OpenFeed(origin));
        self.settle(host);
    }

    pub(super) fn open_feed(&mut self, origin: Origin) {
        let host = origin.host;
        if !self.is_running(origin) {
            return;
        }
        let may_open_at = self.hosts[host].feed_may_open_at.max(self.engine_up_at);
        let is_reachable = !self.network.is_cut(LinkId::ToEngine(host))
            && !self.network.is_cut(LinkId::Feed(host));
        if self.now < may_open_at || !is_reachable {
            let again = self.now + Duration::from_millis(500);
            self.queue.at(again.max(may_open_at), WorldEvent::OpenFeed(origin));
            return;
        }
        let Some(process) = &mut self.hosts[host].process else { return };
        if process.feed.is_open {
            return;
        }
        let names = process.feed.open();
        let generation = process.feed.generation;
        let uid = process.node.uid().to_owned();
        self.story.tell(self.now, format_args!("h{host} opens feed {generation}"));
        self.engine.open_feed(host, generation, &uid);
        let losses_until = &mut self.hosts[host].losses_until;
        *losses_until = (self.now + AFTER_LOSS).max(*losses_until);
        for (name, number) in names {
            self.send_follow(origin, name, Some(number));
        }
    }

    /// Every connection to the engine ends, and can be made again after a time.
    pub(crate) fn break_engine_connections(&mut self, down: Duration) {
        self.engine_up_at = self.engine_up_at.max(self.now + down);
        for host in 0..self.hosts.len() {
            let origin = self.origin(host);
            self.lose_feed(host);
            let Some(process) = &mut self.hosts[host].process else { continue };
            process.generation += 1;
            if let Some(port) = &process.port {
                port.set_connected(false);
            }
            for (_, outstanding) in std::mem::take(&mut process.outstanding) {
                (outstanding.give_up)();
            }
            let at = self.engine_up_at + self.random.between_ms(20, 300);
            self.queue.at(at, WorldEvent::Reconnect(origin));
            self.settle(host);
        }
    }
}

/// The connection of a host for calls is made again, when the engine can be reached.
pub(super) fn reconnect(world: &mut World, origin: Origin) {
    if world.now < world.engine_up_at {
        let at = world.engine_up_at + world.random.between_ms(20, 300);
        world.queue.at(at, WorldEvent::Reconnect(origin));
    } else if let Some(port) = running(world, origin).and_then(|it| it.port.as_ref()) {
        port.set_connected(true);
    }
}

/// Once a second a host looks whether its PUB/SUB connection carries anything.
pub(super) fn probe_feed(world: &mut World, host: usize) {
    let is_cut = world.network.is_cut(LinkId::Feed(host));
    let Some(process) = &world.hosts[host].process else { return };
    let is_open = process.feed.is_open;
    let silence = &mut world.feed_silence[host];
    *silence = if is_cut && is_open { *silence + 1 } else { 0 };
    if *silence > FEED_SILENCE_MAX {
        *silence = 0;
        world.engine.close_feed(host);
        world.lose_feed(host);
    }
}

/// The process of an event, if it still runs.
pub(super) fn running(world: &mut World, origin: Origin) -> Option<&mut Process> {
    if world.is_running(origin) { world.hosts[origin.host].process.as_mut() } else { None }
}

/// A node has found out what it missed within this time.
pub(super) const AFTER_LOSS: Duration = Duration::from_secs(30);
/// A call that is not answered within this time has failed.
const IO_TIMEOUT: Duration = Duration::from_secs(4);
/// Seconds of silence after which a PUB/SUB connection is closed.
const FEED_SILENCE_MAX: u32 = 8;
