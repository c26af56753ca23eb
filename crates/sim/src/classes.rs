//! Millions of clients as counts: how many of a zone are connected, wait for their next try, or wait in a queue, in steps of 100 ms.
//! In: a setting with costs and what happens → out: for each step connects, deliveries, commands of the engine, times in queues.
//! Pure: expected values instead of chance. Never: single clients; `classes/exact.rs` compares with them.
//! Changed here: how clients, nodes and the engine hold each other up. Costs and what happens stand in `classes/scenarios.rs`.

pub mod exact;
pub mod plot;
pub mod scenarios;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::traffic::STEP;

/// The setting of a simulation. Times are seconds.
#[derive(Clone, Debug)]
pub struct Setting {
    pub clients: f64,
    /// Nodes are alike, and spread over zones that are alike.
    pub zones: usize,
    pub nodes_of_zone: f64,
    pub cores_of_node: f64,
    /// Connections that a node accepts each second.
    pub rate_limit: f64,
    pub redis_shards: f64,
    pub backoff: Backoff,
    pub costs: Costs,
    /// Publications each second, of all channels.
    pub publications: f64,
    /// The clients connect for the first time during this time; without it they are connected at the beginning.
    pub arrive_within: Option<f64>,
    pub outage: Option<Outage>,
    pub lasts: f64,
}

/// A zone is gone for a time.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    pub at: f64,
    pub lasts: f64,
    /// Its clients notice between these times after its beginning.
    pub noticed_from: f64,
    pub noticed_until: f64,
    /// Time after its beginning from which the balancer sends it no clients, until it is back.
    pub detected_after: f64,
}

/// The pause before a try: evenly drawn between `least` and `extra + growth × 2ⁿ`, at most `most`, before try n after a success.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pub least: f64,
    pub extra: f64,
    pub growth: f64,
    pub most: f64,
    /// Time between a try and the news of its failure.
    pub round_trip: f64,
}

/// Seconds of a core, and commands of the engine.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    pub connect: f64,
    pub delivery: f64,
    /// For each second of a connection.
    pub idle: f64,
    pub command: f64,
    pub commands_of_connect: f64,
    pub commands_of_second: f64,
    /// Deliveries of a publication for each client that is connected.
    pub deliveries_of_client: f64,
}

/// What happened in a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Connections that nodes accepted.
    pub connects: f64,
    pub deliveries: f64,
    pub commands: f64,
    pub connected: f64,
    /// The part of the cores that is busy, in the zone where it is the largest.
    pub node_busy: f64,
    /// How long a connect that comes now waits for a core of its node, and a command for its Redis.
    pub node_wait: f64,
    pub engine_wait: f64,
}

/// Clients that wait in a queue since the same step, by the number of their try.
struct QueuedClients {
    since: usize,
    clients: [f64; TRIES],
    /// They have given up; the work is done nevertheless.
    are_gone: bool,
}

#[derive(Default)]
struct Zone {
    connected: f64,
    queue: VecDeque<QueuedClients>,
    /// Deliveries that wait, in seconds of a core.
    overdue: f64,
    busy: f64,
}

/// All classes at one time.
struct Classes<'a> {
    setting: &'a Setting,
    zones: Vec<Zone>,
    /// Clients that try to connect, by step and number of the try.
    tries: Vec<[f64; TRIES]>,
    /// Commands that wait for Redis, and those that come again later, by step.
    backlog: f64,
    repeated: Vec<f64>,
}

/// Plays a setting.
pub fn run(setting: &Setting) -> Vec<Step> {
    let steps = step_of(setting.lasts);
    let mut classes = Classes {
        setting,
        zones: (0..setting.zones).map(|_| Zone::default()).collect(),
        tries: vec![[0.0; TRIES]; steps],
        backlog: 0.0,
        repeated: vec![0.0; steps],
    };
    match setting.arrive_within {
        Some(time) => classes.try_between(0, setting.clients, 0.0, time),
        None => {
            let of_zone = setting.clients / setting.zones as f64;
            classes.zones.iter_mut().for_each(|zone| zone.connected = of_zone);
        }
    }
    (0..steps).map(|step| classes.step(step)).collect()
}

impl Classes<'_> {
    fn step(&mut self, step: usize) -> Step {
        self.begin_outage(step);
        let mut done = Step { connects: self.accept(step), ..Step::default() };
        let is_up: Vec<bool> = (0..self.zones.len()).map(|zone| self.is_up(zone, step)).collect();
        let mut served = 0.0;
        for (zone, _) in is_up.iter().enumerate().filter(|(_, is_up)| **is_up) {
            self.give_up(zone, step);
            let connected = self.zones[zone].connected;
            let costs = &self.setting.costs;
            let rate = self.setting.publications * costs.deliveries_of_client;
            let deliveries = connected * rate * STEP;
            let idle = connected * costs.idle * STEP;
            done.deliveries += deliveries;
            served += self.serve(zone, idle + deliveries * costs.delivery);
            done.node_busy = done.node_busy.max(self.zones[zone].busy);
            done.node_wait = done.node_wait.max(self.node_wait(zone));
        }
        done.connected = self.zones.iter().map(|zone| zone.connected).sum();
        done.commands = self.command(step, served, done.connected);
        done.engine_wait = self.engine_wait();
        done
    }

    /// When a zone ends, its clients notice and try again.
    fn begin_outage(&mut self, step: usize) {
        let Some(outage) = self.setting.outage.filter(|it| step_of(it.at) == step) else { return };
        let zone = std::mem::take(&mut self.zones[0]);
        let waiting = zone.queue.iter().filter(|part| !part.are_gone);
        let clients = zone.connected + waiting.flat_map(|part| part.clients).sum::<f64>();
        let Outage { at, noticed_from, noticed_until, .. } = outage;
        let backoff = self.setting.backoff;
        // The pause before the first try is added to the time at which they notice.
        let parts = step_of(noticed_until - noticed_from).max(1);
        for part in 0..parts {
            let noticed = at + noticed_from + part as f64 * STEP;
            let from = noticed + backoff.least;
            self.try_between(1, clients / parts as f64, from, noticed + backoff.longest(1));
        }
    }

    fn is_up(&self, zone: usize, step: usize) -> bool {
        let outage = self.setting.outage.filter(|_| zone == 0);
        let is_out = |it: Outage| (step_of(it.at)..step_of(it.at + it.lasts)).contains(&step);
        !outage.is_some_and(is_out)
    }

    /// The balancer spreads what tries now. Returns how many were accepted.
    fn accept(&mut self, step: usize) -> f64 {
        let tries = self.tries[step];
        let all: f64 = tries.iter().sum();
        let is_undetected = |outage: Outage| step < step_of(outage.at + outage.detected_after);
        let gets_clients = |zone: &usize| {
            self.is_up(*zone, step) || self.setting.outage.is_some_and(is_undetected)
        };
        let targets: Vec<usize> = (0..self.zones.len()).filter(gets_clients).collect();
        let limit = self.setting.rate_limit * self.setting.nodes_of_zone * STEP;
        let mut accepted = 0.0;
        for zone in &targets {
            let share = all / targets.len() as f64;
            let is_up = self.is_up(*zone, step);
            let taken = if is_up { share.min(limit) } else { 0.0 };
            let of_each = |part: f64| tries.map(|it| it * part / all.max(f64::MIN_POSITIVE));
            self.try_again(step, of_each(share - taken));
            if taken > 0.0 {
                let part = QueuedClients { since: step, clients: of_each(taken), are_gone: false };
                self.zones[*zone].queue.push_back(part);
                accepted += taken;
            }
        }
        accepted
    }

    /// Clients whose connect took too long close the connection and try again.
    fn give_up(&mut self, zone: usize, step: usize) {
        let over = step.saturating_sub(step_of(CONNECT_TIMEOUT));
        let mut given_up = [0.0; TRIES];
        for part in &mut self.zones[zone].queue {
            if part.since < over && !part.are_gone {
                part.are_gone = true;
                given_up.iter_mut().zip(part.clients).for_each(|(sum, clients)| *sum += clients);
            }
        }
        self.try_again(step, given_up);
    }

    /// The cores of a zone do `other` work first, then connects. Returns how many are connected now that were not.
    fn serve(&mut self, zone: usize, other: f64) -> f64 {
        let cores = self.setting.cores_of_node * self.setting.nodes_of_zone;
        let zone = &mut self.zones[zone];
        let owed = zone.overdue + other;
        zone.overdue = (owed - cores * STEP).max(0.0);
        let mut room = (cores * STEP - owed).max(0.0) / self.setting.costs.connect;
        let mut connected = 0.0;
        while let Some(part) = zone.queue.front_mut() {
            let clients: f64 = part.clients.iter().sum();
            let served = clients.min(room);
            connected += if part.are_gone { 0.0 } else { served };
            room -= served;
            if served < clients {
                part.clients.iter_mut().for_each(|it| *it *= 1.0 - served / clients);
                break;
            }
            zone.queue.pop_front();
        }
        zone.connected += connected;
        let free = room * self.setting.costs.connect / (cores * STEP);
        zone.busy = 1.0 - free.min(1.0);
        connected
    }

    /// Redis executes commands. What connects ask of it fails if it would wait too long, and is asked again. Returns how many were
    /// executed.
    fn command(&mut self, step: usize, connects: f64, connected: f64) -> f64 {
        let costs = &self.setting.costs;
        let shards = self.setting.redis_shards;
        self.backlog += (self.setting.publications + connected * costs.commands_of_second) * STEP;
        let of_connects = connects * costs.commands_of_connect + self.repeated[step];
        let room = shards * IO_TIMEOUT / costs.command - self.backlog;
        let waiting = of_connects.min(room.max(0.0));
        self.backlog += waiting;
        self.repeat(step, of_connects - waiting);
        let executed = self.backlog.min(shards * STEP / costs.command);
        self.backlog -= executed;
        executed
    }

    fn repeat(&mut self, step: usize, commands: f64) {
        let pauses = step_of(RESUBSCRIBE_MOST);
        for pause in 0..pauses {
            if let Some(later) = self.repeated.get_mut(step + step_of(IO_TIMEOUT) + pause) {
                *later += commands / pauses as f64;
            }
        }
    }

    fn node_wait(&self, zone: usize) -> f64 {
        let cores = self.setting.cores_of_node * self.setting.nodes_of_zone;
        let zone = &self.zones[zone];
        let waiting: f64 = zone.queue.iter().flat_map(|part| part.clients).sum();
        (zone.overdue + waiting * self.setting.costs.connect) / cores
    }

    fn engine_wait(&self) -> f64 {
        self.backlog * self.setting.costs.command / self.setting.redis_shards
    }

    /// Clients whose try failed pause, longer each time.
    fn try_again(&mut self, step: usize, clients: [f64; TRIES]) {
        let backoff = self.setting.backoff;
        let failed_at = step as f64 * STEP + backoff.round_trip;
        for (number, clients) in clients.into_iter().enumerate().filter(|(_, it)| *it > 0.0) {
            let next = (number + 1).min(TRIES - 1);
            let until = failed_at + backoff.longest(next);
            self.try_between(next, clients, failed_at + backoff.least, until);
        }
    }

    /// Spreads tries evenly over a time, at least over the step of its beginning.
    fn try_between(&mut self, number: usize, clients: f64, from: f64, until: f64) {
        let first = from / STEP;
        let last = (until / STEP).max(first + 1e-9);
        for step in first as usize..self.tries.len().min(last.ceil() as usize) {
            let begin = first.max(step as f64);
            let end = last.min(step as f64 + 1.0);
            self.tries[step][number] += clients * (end - begin) / (last - first);
        }
    }
}

impl Backoff {
    fn longest(&self, number: usize) -> f64 {
        (self.extra + self.growth * 2_f64.powi(number as i32)).min(self.most)
    }
}

/// The longest queue of work that is done at a rate each second, in things that wait.
pub fn longest_queue(arrivals: &[f64], rate: f64) -> f64 {
    let mut queue = 0.0_f64;
    let lengths = arrivals.iter().map(|arrived| {
        queue = (queue + arrived - rate * STEP).max(0.0);
        queue
    });
    lengths.fold(0.0, f64::max)
}

fn step_of(seconds: f64) -> usize {
    (seconds / STEP).round() as usize
}

/// The pause grows no more after so many tries.
const TRIES: usize = 10;
/// SDKs wait so many seconds for the reply to a connect.
const CONNECT_TIMEOUT: f64 = 5.0;
/// `engine.redis.io_timeout`.
const IO_TIMEOUT: f64 = 4.0;
/// SDKs subscribe again within so many seconds after a temporary error.
const RESUBSCRIBE_MOST: f64 = 20.0;
