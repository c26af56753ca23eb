//! Presence ends: at the end it has exactly those who are subscribed. Joins and leaves are of others.
//! In: joins and leaves as clients see them, the members in the engine → out: a broken promise.
//! Uses the clients. Never: the registry of the product.
//! Changed here: what presence promises.

use std::collections::BTreeSet;
use std::time::Instant;

use super::Checkers;
use crate::client::{ClientState, Seen, SubscriptionState};
use crate::world::World;

impl Checkers {
    /// No client hears its own leave.
    pub(super) fn check_presence_pushes(&mut self, world: &World, client: usize, seen: &Seen) {
        if let Seen::Parted { channel, client: id } = seen
            && *id == world.clients[client].id
        {
            self.broken_for("no client hears its own leave", client, channel, id.clone());
        }
    }

    pub(super) fn finish_presence(&mut self, world: &World, now: Instant) {
        if !self.has_engine {
            return;
        }
        for channel in world.plan.channel_names() {
            if channel.starts_with("cache:") {
                continue;
            }
            let is_there = |client: &&crate::client::SimulatedClient| {
                client.state == ClientState::Connected
                    && client
                        .subscriptions
                        .get(&channel)
                        .is_some_and(|it| it.state == SubscriptionState::On)
            };
            let expected: BTreeSet<String> =
                world.clients.iter().filter(is_there).map(|client| client.id.clone()).collect();
            let present = world.engine.present(&channel, now);
            if present != expected {
                let text = format!("{channel} has {present:?} and should have {expected:?}");
                self.broken("presence has who is there", text, vec![channel]);
            }
        }
    }
}
