//! Checkers: the promises of a cluster, compared with what clients saw and what the engine holds. None of them asks the product.
//! In: what clients see, commands and their results, a look once a second, the end → out: the first promise that was broken.
//! Uses the truth of the engine. Never: the node's own counters, except at the end, when all have to be zero.
//! Changed here: which checkers there are; each has a file.

mod answers;
mod commands;
mod delivery;
mod life;
mod lists;
mod moves;
mod occupancy;
mod presence;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::backend::{BackendCommand, GivenCommand};
use crate::client::Seen;
use crate::faults::{FaultKind, PlannedFault};
use crate::plan::SeedPlan;
use crate::world::World;
use commands::Commands;
use delivery::DeliveryCheck;
use lists::Lists;
use moves::Moves;
use occupancy::Occupancy;
use presence::PresenceCheck;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The checker.
    pub promise: &'static str,
    pub text: String,
    /// Words that are in the lines of the story about it.
    pub words: Vec<String>,
}

/// All checkers with what they remember.
#[derive(Default)]
pub(crate) struct Checkers {
    violation: Option<Violation>,
    delivery: DeliveryCheck,
    commands: Commands,
    lists: Lists,
    moves: Moves,
    occupancy: Occupancy,
    presence: PresenceCheck,
    /// When the first frame of a connection arrived at its host.
    arrived: BTreeMap<u64, Duration>,
    /// By client: since when it lacks a subscription, or with "" its connection.
    absent: BTreeMap<usize, BTreeMap<String, Duration>>,
    has_engine: bool,
    concurrency: usize,
    has_lost_data: bool,
}

impl Checkers {
    pub(super) fn new(plan: &SeedPlan) -> Self {
        let is_lossless = !plan.faults.iter().any(PlannedFault::loses_messages);
        let forgets = plan.tuning.snapshot_interval.is_none();
        let is_restart = |fault: &PlannedFault| matches!(fault.kind, FaultKind::Restart { .. });
        let loses_data = |fault: &PlannedFault| fault.loses_data() || forgets && is_restart(fault);
        let presence = PresenceCheck::new(is_lossless);
        Self {
            presence,
            has_engine: plan.has_engine,
            concurrency: plan.tuning.concurrency,
            has_lost_data: plan.faults.iter().any(loses_data),
            ..Self::default()
        }
    }

    pub(super) fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    pub(super) fn take_violation(&mut self) -> Option<Violation> {
        self.violation.take()
    }

    /// A frame of a connection arrived at its host.
    pub(super) fn frame_arrived(&mut self, connection: u64, now: Duration) {
        self.arrived.entry(connection).or_insert(now);
    }

    /// A client saw something.
    pub(super) fn see(&mut self, world: &World, client: usize, seen: &Seen) {
        self.check_delivery(world, client, seen);
        self.check_life(world, client, seen);
        self.check_moves(world, client, seen);
        self.check_presence_pushes(world, client, seen);
        self.check_lists(world, client, seen);
        self.check_answers(world, client, seen);
        self.check_counts(world, client, seen);
    }

    /// Once a second.
    pub(super) fn look(&mut self, world: &World) {
        self.look_at_lives(world);
        self.look_at_lists(world);
        if world.now.as_secs().is_multiple_of(LOOK_EVERY) {
            self.look_at_delivery(world);
            self.look_at_presence(world);
        }
        let contradiction = world.engine.truth.lock().contradiction().map(str::to_owned);
        if let Some(contradiction) = contradiction {
            self.broken("an epoch names one stream", contradiction, Vec::new());
        }
    }

    /// A command of a backend failed.
    pub(super) fn command_failed(&mut self, world: &World, command: &GivenCommand) {
        self.lists.failed(command, world.hosts[command.host].losses_until);
        if was_calm(world, command.given_at) {
            self.broken(DONE, format!("{command:?} failed"), Vec::new());
        }
    }

    /// A publish was answered without an error: it was accepted, now or when it was tried before.
    pub(super) fn answered(&mut self, world: &World, channel: &str, number: u64) {
        if !world.engine.truth.lock().is_accepted(channel, number) {
            let text = format!("{number} is answered and was not published");
            self.broken("what is answered was published", text, vec![channel.to_owned()]);
        }
    }

    pub(super) fn command_given(&mut self, kind: &BackendCommand, now: Duration) {
        self.commands.given(kind, now);
        self.moves.given(kind, now);
        self.lists.given(kind, now);
    }

    pub(super) fn command_done(&mut self, command: &GivenCommand) {
        self.lists.done(command);
    }

    /// Everything has come that will come.
    pub(super) fn finish(&mut self, world: &mut World, now: Instant) {
        self.finish_lives(world);
        self.finish_delivery(world, now);
        self.finish_presence(world, now);
        self.finish_occupancy(world);
        self.finish_memory(world, now);
        let twice = world.engine.truth.lock().accepted_twice().map(|(channel, number)| {
            format!("publication {number} was accepted twice in {channel}")
        });
        if let Some(text) = twice.filter(|_| !self.has_lost_data) {
            self.broken("a publication with a key is accepted once", text, Vec::new());
        }
    }

    /// The first broken promise counts.
    fn broken(&mut self, promise: &'static str, text: String, words: Vec<String>) {
        self.violation.get_or_insert(Violation { promise, text, words });
    }

    /// A promise to a client about a channel is broken.
    fn broken_for(&mut self, promise: &'static str, client: usize, channel: &str, text: String) {
        let text = format!("c{client} in {channel}: {text}");
        self.broken(promise, text, vec![format!("c{client}"), channel.to_owned()]);
    }
}

/// Whether nothing was broken that calls need, for a while before a time and since then.
fn was_calm(world: &World, since: Duration) -> bool {
    let from = since.saturating_sub(CALM_AFTER);
    let is_trouble = |fault: &PlannedFault| {
        let is_of_host = (0..world.hosts.len()).any(|it| fault.disturbs(it, from, world.now));
        let is_of_calls = fault.loses_data() || matches!(fault.kind, FaultKind::TakeOver { .. });
        is_of_host || is_of_calls && fault.at <= world.now && fault.at + fault.lasts >= from
    };
    !from.is_zero() && !world.plan.faults.iter().any(is_trouble)
}

/// Seconds between two looks that take a tenth of a run if there is one each second. What they look for lasts longer.
const LOOK_EVERY: u64 = 3;
/// After a fault nodes find each other again within this time.
const CALM_AFTER: Duration = Duration::from_secs(20);
/// A promise about calls.
const DONE: &str = "what can be done is done";

/// Whether a client or the host of its connection may be late since a time, for a reason that no node can notice.
fn had_faults(world: &World, client: usize, since: Duration) -> bool {
    let host = world.host_of(world.clients[client].connection);
    let host_until = host.map_or(Duration::MAX, |it| world.hosts[it].silent_faults_until);
    let process = host.and_then(|it| world.hosts[it].process.as_ref());
    // A connection to a process that is gone ends when the client misses its pings.
    let connection = world.clients[client].connection;
    let is_there = process.is_some_and(|it| it.connections.contains_key(&connection));
    world.client_faults_until[client] >= since || host_until >= since || !is_there
}

/// Whether the host of a client could not hear the engine a moment ago. A new program begins again to look for what is missing.
fn was_feed_down(world: &World, client: usize) -> bool {
    let host = world.host_of(world.clients[client].connection);
    let Some(host) = host.map(|it| &world.hosts[it]) else { return false };
    let looks_since = host.feed_may_open_at.max(host.taken_over_at);
    !host.feed_may_open_at.is_zero() && looks_since + Duration::from_secs(10) > world.now
}

/// The same for the engine.
fn had_engine_faults(world: &World, since: Duration) -> bool {
    world.engine_faults_until >= since
}
