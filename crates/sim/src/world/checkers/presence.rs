//! Presence ends: who left is gone soon, and at the end it has exactly those who are subscribed. Joins and leaves alternate.
//! In: joins and leaves as clients see them, the members in the engine → out: a broken promise.
//! Uses the clients. Never: the registry of the product.
//! Changed here: what presence promises.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Checkers;
use crate::client::{ClientState, Seen, SimulatedClient, SubscriptionState};
use crate::world::{Origin, World};

/// Who is there.
#[derive(Default)]
pub(super) struct PresenceCheck {
    /// By client id: the client, and the process of its connection.
    origins: BTreeMap<String, (usize, Origin)>,
    /// Members who have left, by channel and id, with the time at which that was seen.
    left: BTreeMap<(String, String), Duration>,
    /// By client and channel: whether others have joined or left since it subscribed.
    others: BTreeMap<(usize, String), BTreeMap<String, bool>>,
    /// No join and no leave can be lost.
    is_lossless: bool,
}

impl PresenceCheck {
    pub(super) fn new(is_lossless: bool) -> Self {
        Self { is_lossless, ..Self::default() }
    }
}

impl Checkers {
    /// Joins and leaves of others alternate, and no client hears its own leave.
    pub(super) fn check_presence_pushes(&mut self, world: &World, client: usize, seen: &Seen) {
        let known = &mut self.presence;
        match seen {
            Seen::Connected { connection, id, .. } => {
                let origin = world.host_of(*connection).map(|host| world.origin(host));
                known.origins.extend(origin.map(|origin| (id.clone(), (client, origin))));
            }
            Seen::Subscribed { channel, .. }
            | Seen::Unsubscribed { channel, .. }
            | Seen::Left(channel) => drop(known.others.remove(&(client, channel.clone()))),
            Seen::Disconnected { .. } => known.others.retain(|(of, _), _| *of != client),
            Seen::Joined { channel, client: id } | Seen::Parted { channel, client: id } => {
                let is_join = matches!(seen, Seen::Joined { .. });
                if !is_join && *id == world.clients[client].id {
                    self.broken_for("no client hears its own leave", client, channel, id.clone());
                    return;
                }
                let others = known.others.entry((client, channel.clone())).or_default();
                let is_repeated = others.insert(id.clone(), is_join) == Some(is_join);
                // Its own leave is not told: it comes again after that.
                let is_own = *id == world.clients[client].id;
                if is_repeated && known.is_lossless && !is_own {
                    let text = format!("{seen} came twice");
                    self.broken_for("joins and leaves alternate", client, channel, text);
                }
            }
            _ => {}
        }
    }

    /// Who left is gone soon, where nothing is broken.
    pub(super) fn look_at_presence(&mut self, world: &World) {
        let mut left = BTreeMap::new();
        for channel in channels(world) {
            for id in present(world, &channel, world.instant()) {
                let Some((client, _)) = self.presence.origins.get(&id) else { continue };
                let known = &world.clients[*client];
                let may_stay = known.id == id && is_connected(known) && wants(known, &channel);
                if !may_stay {
                    let key = (channel.clone(), id);
                    let since = self.presence.left.get(&key).copied().unwrap_or(world.now);
                    left.insert(key, since);
                }
            }
        }
        self.presence.left = left;
        let is_late = |since: Duration| since + GONE_WITHIN < world.now;
        let late = self
            .presence
            .left
            .iter()
            .find(|((_, id), since)| is_late(**since) && self.could_remove(world, id, **since));
        if let Some(((channel, id), since)) = late {
            let text = format!("{id} is in {channel} and left before {since:?}");
            let words = vec![channel.clone()];
            self.broken("who left is gone", text, words);
        }
    }

    /// Whether the process of a connection has seen its end and could tell the engine.
    fn could_remove(&self, world: &World, id: &str, since: Duration) -> bool {
        let (client, origin) = self.presence.origins[id];
        let host = &world.hosts[origin.host];
        world.is_running(origin)
            && host.silent_faults_until < since
            && world.client_faults_until[client] < since
            && world.engine_faults_until < since
    }

    pub(super) fn finish_presence(&mut self, world: &World, now: Instant) {
        let names = channels(world);
        for channel in names {
            let there = world.clients.iter().filter(|it| is_connected(it) && is_on(it, &channel));
            let expected: BTreeSet<String> = there.map(|client| client.id.clone()).collect();
            let present = present(world, &channel, now);
            if present != expected {
                let text = format!("{channel} has {present:?} and should have {expected:?}");
                let wrong = present.symmetric_difference(&expected);
                let known = wrong.filter_map(|id| self.presence.origins.get(id));
                let mut words: Vec<String> =
                    known.map(|(client, _)| format!("c{client}")).collect();
                words.push(channel);
                self.broken("presence has who is there", text, words);
                return;
            }
            let of_channel = |(key, _): &(&(usize, String), _)| key.1 == channel;
            for ((client, _), others) in self.presence.others.iter().filter(of_channel) {
                let stays = |id: &&String| others[*id] && !expected.contains(*id);
                if let Some(id) = others.keys().find(stays)
                    && self.presence.is_lossless
                {
                    let text = format!("it was not told that {id} left");
                    self.broken_for("leaves are told", *client, &channel, text);
                    return;
                }
            }
        }
    }
}

/// The channels with presence.
fn channels(world: &World) -> Vec<String> {
    let mut names = world.plan.channel_names();
    names.retain(|name| !name.starts_with("cache:"));
    names
}

/// The ids of the members of a channel.
fn present(world: &World, channel: &str, now: Instant) -> BTreeSet<String> {
    if world.plan.has_engine {
        return world.engine.present(channel, now);
    }
    let Some(process) = &world.hosts[0].process else { return BTreeSet::new() };
    let answer = process.node.channels().presence(channel, now).ready();
    let members = answer.ok().and_then(Result::ok).unwrap_or_default();
    members.iter().map(|info| info.client.clone()).collect()
}

fn is_connected(client: &SimulatedClient) -> bool {
    client.state == ClientState::Connected
}

fn is_on(client: &SimulatedClient, channel: &str) -> bool {
    client.subscriptions.get(channel).is_some_and(|it| it.state == SubscriptionState::On)
}

/// Whether a client is subscribed or is about to be.
fn wants(client: &SimulatedClient, channel: &str) -> bool {
    client.subscriptions.get(channel).is_some_and(|it| it.state != SubscriptionState::Off)
}

/// A member is removed within this time: a call of the engine takes 4 s at most.
const GONE_WITHIN: Duration = Duration::from_secs(8);
