//! Blocked users stay out, and revoked tokens give nothing.
//! In: blocks and invalidations with the times of their answers → out: a broken promise.
//! Uses the clients. Never: the table of the product.
//! Changed here: from when on a user may not be in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Checkers, had_engine_faults, had_faults};
use crate::backend::{BackendCommand, GivenCommand};
use crate::client::{ClientState, Seen, SimulatedClient, SubscriptionState};
use crate::host::Process;
use crate::world::World;

/// Blocks and invalidations.
#[derive(Default)]
pub(super) struct Lists {
    /// By user: whether a block was tried, and since when it holds.
    blocks: BTreeMap<String, Block>,
    /// By user and channel: the least `iat` of a valid token, and since when that holds.
    invalid: BTreeMap<(String, String), (u64, Duration)>,
    /// Users and channels of invalidations that were tried.
    invalidated: BTreeSet<(String, String)>,
}

#[derive(Default)]
struct Block {
    /// When it was given last, and its end.
    tried_at: Duration,
    end_tried_at: Duration,
    since: Option<Duration>,
    /// Ends of blocks that were given and are not answered, and when one was answered last.
    ends_given: u32,
    ended_at: Duration,
}

impl Lists {
    pub(super) fn given(&mut self, kind: &BackendCommand, now: Duration) {
        match kind {
            BackendCommand::Block(user) => {
                let block = self.blocks.entry(user.clone()).or_default();
                block.tried_at = now.max(block.tried_at);
            }
            BackendCommand::Invalidate { user, channel, .. } => {
                let key = (user.clone(), channel.clone());
                self.invalidated.insert(key);
            }
            // From now on the user may be in or not.
            BackendCommand::Unblock(user) => {
                let block = self.blocks.entry(user.clone()).or_default();
                block.since = None;
                block.end_tried_at = now;
                block.ends_given += 1;
            }
            _ => {}
        }
    }

    /// A command failed. Its call may wait in a link, and have its effect until then.
    pub(super) fn failed(&mut self, command: &GivenCommand, until: Duration) {
        if let BackendCommand::Block(user) = &command.kind {
            let block = self.blocks.entry(user.clone()).or_default();
            block.tried_at = until.max(block.tried_at);
        }
    }

    pub(super) fn done(&mut self, command: &GivenCommand) {
        match &command.kind {
            BackendCommand::Block(user) => {
                let block = self.blocks.entry(user.clone()).or_default();
                // It and the end of another one may have come in any order.
                if command.given_at <= block.end_tried_at {
                    block.tried_at = command.done_at.max(block.tried_at);
                }
                if block.ends_given == 0 && block.ended_at < command.given_at {
                    block.since = Some(command.done_at);
                }
            }
            BackendCommand::Unblock(user) => {
                let block = self.blocks.entry(user.clone()).or_default();
                block.ends_given = block.ends_given.saturating_sub(1);
                block.ended_at = command.done_at;
                block.since = None;
            }
            BackendCommand::Invalidate { user, channel, issued_before } => {
                let key = (user.clone(), channel.clone());
                let new = (*issued_before, command.done_at);
                let known = self.invalid.entry(key).or_insert(new);
                // An older one that is repeated makes no tokens valid again.
                *known = new.max(*known);
            }
            _ => {}
        }
    }

    /// Whether tokens of a user for a channel were made invalid, or that was tried.
    pub(super) fn may_be_invalid(&self, user: &str, channel: &str) -> bool {
        self.invalidated.contains(&(user.to_owned(), channel.to_owned()))
    }

    fn blocked_since(&self, user: &str) -> Option<Duration> {
        self.blocks.get(user)?.since
    }
}

impl Checkers {
    pub(super) fn check_lists(&mut self, world: &World, client: usize, seen: &Seen) {
        let Seen::Connected { connection, .. } = seen else { return };
        let known = &world.clients[client];
        let Some(since) = self.lists.blocked_since(&known.user) else { return };
        let arrived = self.arrived.get(connection).copied().unwrap_or_default();
        if arrived > since + SPREAD && self.must_know(world, known, since) {
            let text = format!("{} is blocked since {since:?}", known.user);
            self.broken_for(OUT, client, "connect", text);
        }
    }

    pub(super) fn look_at_lists(&mut self, world: &World) {
        for client in world.clients.iter().filter(|it| it.state == ClientState::Connected) {
            let blocked_since = self.lists.blocked_since(&client.user);
            let since = blocked_since.filter(|since| *since + SPREAD < world.now);
            if since.is_some_and(|since| self.must_know(world, client, since)) {
                let text = format!("{} is blocked since {since:?}", client.user);
                self.broken_for(OUT, client.number, "connection", text);
            }
            if self.lists.invalid.is_empty() {
                continue;
            }
            for (channel, subscription) in &client.subscriptions {
                let is_on = subscription.state == SubscriptionState::On;
                let Some(issued_at) = subscription.token.filter(|_| is_on) else { continue };
                let key = (client.user.clone(), channel.clone());
                let Some((issued_before, since)) = self.lists.invalid.get(&key).copied() else {
                    continue;
                };
                let is_old = issued_at < issued_before && since + SPREAD < world.now;
                if is_old && self.must_know(world, client, since) {
                    let text = format!("its token of {issued_at} is invalid since {since:?}");
                    self.broken_for(OUT, client.number, channel, text);
                }
            }
        }
    }

    /// Whether a user may be blocked, as far as the host of a client has had the time to learn that it is not.
    pub(super) fn may_be_blocked(&self, world: &World, client: usize) -> bool {
        let Some(block) = self.lists.blocks.get(&world.clients[client].user) else { return false };
        let since = block.ended_at;
        let is_known = block.ends_given == 0
            && block.tried_at < block.end_tried_at
            && since + SPREAD * 3 < world.now
            && world.losses.is_empty();
        let host = world.host_of(world.clients[client].connection);
        let was_disturbed = host.is_none_or(|host| {
            let from = since.saturating_sub(SPREAD);
            world.plan.faults.iter().any(|fault| fault.disturbs(host, from, world.now))
        });
        !is_known || was_disturbed
    }

    /// Whether the host of a client has had the time to learn of a change, and the client to learn of its end.
    fn must_know(&self, world: &World, client: &SimulatedClient, since: Duration) -> bool {
        let Some(host) = world.host_of(client.connection) else { return false };
        let host = &world.hosts[host];
        // A client may not have noticed that the process of its connection was killed: another one then has the host.
        let is_served = |process: &Process| process.connections.contains_key(&client.connection);
        let starts_later = host.started_at > since && host.process.as_ref().is_some_and(is_served);
        let feed_was_down = host.feed_may_open_at + SPREAD > world.now;
        // What ends a subscription waits for the commands before it.
        let is_cut_off = had_faults(world, client.number, world.now)
            || feed_was_down
            || client.is_calling(world.now);
        let may_be_lost = had_engine_faults(world, world.now) || is_lost(world, since);
        !may_be_lost && (starts_later || !is_cut_off)
    }
}

/// Whether the engine lost what was acknowledged at `since`, and no node may be left that knows it: a replica did not have it yet, or each
/// process was disturbed before it could store it again.
fn is_lost(world: &World, since: Duration) -> bool {
    world.losses.iter().filter(|loss| since <= loss.at).any(|loss| {
        let was_not_replicated = since + loss.lag + SPREAD >= loss.at;
        let until = loss.until + STORED_AGAIN;
        let is_sound = |host: &usize| {
            let from = since.saturating_sub(SPREAD);
            !world.plan.faults.iter().any(|fault| fault.disturbs(*host, from, until))
        };
        was_not_replicated || until >= world.now || !(0..world.hosts.len()).any(|it| is_sound(&it))
    })
}

/// After a loss nodes store again what they know within this time.
const STORED_AGAIN: Duration = Duration::from_secs(10);
const OUT: &str = "blocked users and revoked tokens stay out";
/// A change has reached all nodes and clients after this time, where nothing is slow.
const SPREAD: Duration = Duration::from_secs(5);
