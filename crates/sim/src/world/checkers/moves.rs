//! Clients that hosts send away: old connections only, no storm, and the hosts have the average then. A takeover sends no client away that
//! waits for nothing.
//! In: ends of connections with the code of a server that stops, commands → out: a broken promise.
//! Uses the balancer's counts, the clients. Never: the rule of the product.
//! Changed here: what may happen to a client while nodes share clients or begin again.

use std::collections::BTreeMap;
use std::time::Duration;

use super::commands::REACHED;
use super::{Checkers, had_faults, was_calm};
use crate::backend::{BackendCommand, GivenCommand};
use crate::client::{ClientState, Seen, SimulatedClient};
use crate::world::{World, count_clients};

/// The clients that hosts sent away, and the commands to do so.
#[derive(Default)]
pub(super) struct Moves {
    /// The number of clients that a process of a host sent away without a command.
    by_itself: BTreeMap<(usize, u64), usize>,
    /// The time when a client was last sent away.
    moved_at: BTreeMap<usize, Duration>,
    /// The time of the last command to send clients away.
    commanded_at: Option<Duration>,
    /// The time of the command before that one.
    commanded_before: Option<Duration>,
    /// The time when a backend last subscribed clients.
    ordered_at: Option<Duration>,
}

impl Moves {
    pub(super) fn given(&mut self, kind: &BackendCommand, now: Duration) {
        match kind {
            BackendCommand::SendAway(_) => {
                self.commanded_before = self.commanded_at.replace(now);
            }
            BackendCommand::Subscribe(_) => self.ordered_at = Some(now),
            _ => {}
        }
    }
}

impl Checkers {
    /// Checks a connection that ended with the code of a server that stops.
    pub(super) fn check_moves(&mut self, world: &World, client: usize, seen: &Seen) {
        let Seen::Disconnected { connection, code: 3001, unanswered } = seen else { return };
        let Some(host) = world.host_of(*connection) else { return };
        let is_late = had_faults(world, client, world.now);
        let stopped_at = world.hosts[host].stopped_at;
        if stopped_at.is_some_and(|at| at + LINK_TIME > world.now || is_late) {
            return;
        }
        let is_recent = |at: Option<Duration>| at.is_some_and(|at| at + COMMAND_TIME > world.now);
        let was_taken_over = world.hosts[host].taken_over_at + LINK_TIME > world.now
            || had_faults(world, client, world.now);
        if was_taken_over && (*unanswered > 0 || is_recent(self.moves.ordered_at)) {
            return; // it waited for an answer
        }
        let Some(rebalance) = world.plan.tuning.rebalance else {
            let text = "its connection ended, though it waits for nothing".to_owned();
            return self.broken_for("clients notice no takeover", client, "connection", text);
        };
        self.moves.moved_at.insert(client, world.now);
        if is_recent(self.moves.commanded_at) {
            return;
        }
        let age = world.now - self.arrived.get(connection).copied().unwrap_or_default();
        let has_good_clock = world.hosts[host].stepped_at.is_zero();
        if age < rebalance.min_age && has_good_clock || !rebalance.enabled {
            let text = format!("its connection is {age:?} old");
            self.broken_for("a client moves once in a time", client, "connection", text);
        }
        let process = (host, world.hosts[host].incarnation);
        let count = self.moves.by_itself.entry(process).or_default();
        *count += 1;
        if *count > world.plan.clients {
            let text = format!("{count} clients, where {} exist", world.plan.clients);
            self.broken_for("hosts that flap cause no storm", client, "connection", text);
        }
    }

    /// A command has had the time to take effect: a host is empty, or all have the average.
    pub(super) fn verify_moves(
        &mut self,
        world: &World,
        command: &GivenCommand,
        emptied: Option<usize>,
    ) {
        let min_age = world.plan.tuning.rebalance.map_or(Duration::ZERO, |it| it.min_age);
        // Each replaces the one before; two at the same moment come in any order.
        let is_apart = |before: Duration| before + LINK_TIME < command.given_at;
        let is_last = self.moves.commanded_at == Some(command.given_at)
            && self.moves.commanded_before.is_none_or(is_apart);
        let arrived = |client: &SimulatedClient| self.arrived.get(&client.connection).copied();
        let is_older = |client: &&SimulatedClient, age: Duration| {
            arrived(client).is_some_and(|at| at + age < command.given_at)
        };
        let mut connected = world.clients.iter().filter(|it| it.state == ClientState::Connected);
        if !is_last || !was_calm(world, command.given_at) {
            return;
        }
        if let Some(emptied) = emptied {
            let is_left = |it: &&SimulatedClient| {
                let is_there = world.host_of(it.connection) == Some(emptied);
                is_there
                    && is_older(it, LINK_TIME)
                    && !had_faults(world, it.number, command.given_at)
            };
            if let Some(number) = connected.find(is_left).map(|client| client.number) {
                let text = format!("it is still at h{emptied}");
                self.broken_for(REACHED, number, "connection", text);
            }
            return;
        }
        let moved_at = &self.moves.moved_at;
        let was_moved = |client: &SimulatedClient| {
            moved_at.get(&client.number).is_some_and(|at| *at >= command.given_at)
        };
        // Who came by itself was young, or is in no count yet.
        let is_settled = |client: &SimulatedClient| {
            client.state == ClientState::Connected
                && (is_older(&client, min_age.max(STATE_TIME)) || was_moved(client))
        };
        let average = world.clients.len().div_ceil(world.hosts.len());
        let counts = (0..world.hosts.len()).map(|host| count_clients(world, host));
        let most = counts.max().unwrap_or_default();
        if most > average + 1 && world.clients.iter().all(is_settled) {
            let text = format!("a host has {most} of {} clients", world.clients.len());
            self.broken("hosts have the average", text, Vec::new());
        }
    }
}

/// A command to lose clients has no effect after this time.
const COMMAND_TIME: Duration = Duration::from_secs(40);
/// Nodes know the connections of each other with this delay.
const STATE_TIME: Duration = Duration::from_secs(8);
/// The longest time of a message on its way, where no link is cut.
const LINK_TIME: Duration = Duration::from_secs(2);
