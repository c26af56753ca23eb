//! A command of a backend that was answered has reached every connection of its user, on every node, and each of them once.
//! In: commands, what clients see of them → out: a broken promise.
//! Uses the clients. Never: the lists of connections of the product.
//! Changed here: what a command promises.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Checkers, had_engine_faults, had_faults, was_feed_down};
use crate::backend::{BACKEND_CODE, BackendCommand, GivenCommand, ORDERED};
use crate::client::{ClientState, Seen, SimulatedClient, SubscriptionState};
use crate::world::World;

/// How often something was commanded, and how often clients saw it.
#[derive(Default)]
pub(super) struct Commands {
    /// Unsubscribes by user and channel, and disconnects by user with an empty channel.
    given: BTreeMap<(String, String), u32>,
    /// By client, channel, and the shard that the client was connected to: host, process and shard.
    seen: BTreeMap<(usize, String, [u64; 3]), u32>,
    /// By user: when a backend ended the time of its connections last.
    expired_at: BTreeMap<String, Duration>,
    /// When a client saw that it is subscribed.
    subscribed_at: BTreeMap<(usize, String), Duration>,
}

impl Commands {
    pub(super) fn given(&mut self, kind: &BackendCommand, now: Duration) {
        if let BackendCommand::Expire(user) = kind {
            self.expired_at.insert(user.clone(), now);
        }
        let key = match kind {
            BackendCommand::Disconnect(user) => (user.clone(), String::new()),
            BackendCommand::Unsubscribe { user, channel } => (user.clone(), channel.clone()),
            _ => return,
        };
        *self.given.entry(key).or_default() += 1;
    }

    /// When a client saw last that it is subscribed to a channel.
    pub(super) fn subscribed_at(&self, client: usize, channel: &str) -> Option<Duration> {
        self.subscribed_at.get(&(client, channel.to_owned())).copied()
    }

    /// When a backend ended the time of a user's connections last.
    pub(super) fn expired_at(&self, user: &str) -> Option<Duration> {
        self.expired_at.get(user).copied()
    }
}

impl Checkers {
    /// No shard executes a command more often than it was given. A late command is for the
    /// clients that the shard has then.
    pub(super) fn check_counts(&mut self, world: &World, client: usize, seen: &Seen) {
        let channel = match seen {
            Seen::Subscribed { channel, .. } => {
                let key = (client, channel.clone());
                self.commands.subscribed_at.insert(key, world.now);
                return;
            }
            Seen::Unsubscribed { channel, code: 2000, .. } => channel.clone(),
            Seen::Disconnected { code: BACKEND_CODE, .. } => String::new(),
            _ => return,
        };
        let user = world.clients[client].user.clone();
        let given = self.commands.given.get(&(user, channel.clone())).copied().unwrap_or_default();
        let connection = world.clients[client].connection;
        let host = world.host_of(connection).unwrap_or_default();
        let number_of_shard = connection % world.plan.shards as u64;
        let shard = [host as u64, world.hosts[host].incarnation, number_of_shard];
        let seen = self.commands.seen.entry((client, channel.clone(), shard)).or_default();
        *seen += 1;
        let seen = *seen;
        if seen > given {
            let text = format!("commanded {given} times, seen {seen} times");
            self.broken_for("a command has its effect once", client, &channel, text);
        }
    }

    /// A command has had the time to take effect.
    pub(in crate::world) fn verify(&mut self, world: &World, command: &GivenCommand) {
        let user = match &command.kind {
            BackendCommand::Disconnect(user)
            | BackendCommand::Expire(user)
            | BackendCommand::Subscribe(user)
            | BackendCommand::Unsubscribe { user, .. } => user,
            BackendCommand::SendAway(host) => return self.verify_moves(world, command, *host),
            _ => return,
        };
        for client in world.clients.iter().filter(|client| client.user == *user) {
            let was_there = client.state == ClientState::Connected
                && self.arrived.get(&client.connection).is_some_and(|at| *at < command.given_at);
            // A message may be lost with its connection after the engine has counted who gets it.
            let had_loss = world.losses.iter().any(|loss| loss.at >= command.given_at);
            let host = world.host_of(client.connection);
            let is_lost = had_loss
                || world.plan.faults.iter().any(|fault| {
                    let breaks_feed = |host| fault.disturbs(host, command.given_at, world.now);
                    fault.at >= command.given_at && host.is_some_and(breaks_feed)
                });
            let is_good = !had_faults(world, client.number, command.given_at) && !is_lost;
            // A command about a subscription waits for the calls and subscribes before it.
            let waits = matches!(
                command.kind,
                BackendCommand::Subscribe(_) | BackendCommand::Unsubscribe { .. }
            );
            let is_busy = client.is_calling(world.now) || !client.pending.is_empty();
            if was_there && is_good && !(waits && is_busy) {
                self.verify_for(world, command, client);
            }
        }
    }

    /// The command reached a client whose connection was there before it.
    fn verify_for(&mut self, world: &World, command: &GivenCommand, client: &SimulatedClient) {
        let number = client.number;
        match &command.kind {
            BackendCommand::Disconnect(_) | BackendCommand::Expire(_) => {
                let text = format!("{command:?} left its connection");
                self.broken_for(REACHED, number, "connection", text);
            }
            BackendCommand::Unsubscribe { channel, .. } => {
                let is_on = client
                    .subscriptions
                    .get(channel)
                    .is_some_and(|it| it.state == SubscriptionState::On);
                let since = self.commands.subscribed_at.get(&(number, channel.clone()));
                let is_requested =
                    client.subscriptions.get(channel).is_some_and(|it| it.is_server_side);
                let is_older = since.is_some_and(|since| *since < command.given_at);
                // What a connect requested ends, too, if the connect came before the command.
                let is_of_connect = is_requested && since.is_some();
                if is_on && (is_older || is_of_connect) {
                    let text = format!("{command:?} left its subscription");
                    self.broken_for(REACHED, number, channel, text);
                }
            }
            BackendCommand::Subscribe(_) => {
                let is_here = world.host_of(client.connection) == Some(command.host);
                if !client.subscriptions.contains_key(ORDERED) {
                    // Another host does not tell the caller that a call of the engine failed.
                    let may_have_failed = !is_here && had_engine_faults(world, command.given_at);
                    if !may_have_failed {
                        let text = format!("{command:?} did not subscribe it");
                        self.broken_for(REACHED, number, ORDERED, text);
                    }
                    return;
                }
                let marker = command.marker.filter(|_| is_here && !was_feed_down(world, number));
                if let Some(marker) = marker
                    && world.engine.truth.lock().is_accepted(ORDERED, marker)
                    && !self.delivery.has_ordered(number, marker)
                {
                    let text = format!("{marker} was published after {command:?} was answered");
                    self.broken_for(REACHED, number, ORDERED, text);
                }
            }
            _ => {}
        }
    }
}

pub(super) const REACHED: &str = "a command that was answered has reached everybody";
