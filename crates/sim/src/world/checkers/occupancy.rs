//! Events about occupied channels: numbered without a gap, `occupied` and `vacated` alternate, and at the end they are true.
//! In: events as a backend reads them → out: a broken promise.
//! Uses the rules of docs/events.md for backends, and the clients. Never: the lists of channels of the product.
//! Changed here: what a backend may conclude from events.

use std::collections::{BTreeMap, BTreeSet};

use fanwire_events::{EventType, OutgoingEvent};

use super::Checkers;
use crate::client::{ClientState, SubscriptionState};
use crate::world::World;

/// What a backend knows.
#[derive(Default)]
pub(super) struct Occupancy {
    occupied: BTreeSet<String>,
    /// Channels that the recount which runs has not named yet.
    stale: BTreeSet<String>,
    /// The number of the last event of each node.
    numbers: BTreeMap<String, u64>,
    /// The node whose recount has ended, if no other one has told anything since: its events alternate.
    teller: Option<String>,
}

impl Occupancy {
    fn read(&mut self, node: &str, event: &OutgoingEvent) -> Result<(), String> {
        let last = self.numbers.entry(node.to_owned()).or_default();
        if event.seq <= *last {
            return Ok(()); // sent again
        }
        if event.seq != *last + 1 {
            return Err(format!("event {} of {node} came behind {last}", event.seq));
        }
        *last = event.seq;
        if self.teller.as_deref() != Some(node) {
            self.teller = None;
        }
        let channel = event.channel.as_deref().unwrap_or_default();
        let has_changed = match event.r#type {
            EventType::Occupied => {
                self.stale.remove(channel);
                self.occupied.insert(channel.to_owned())
            }
            EventType::Vacated => self.occupied.remove(channel),
            EventType::RecountStarted => {
                self.stale = self.occupied.clone();
                self.teller = None;
                true
            }
            EventType::RecountEnded => {
                self.occupied.retain(|channel| !self.stale.contains(channel));
                self.teller = Some(node.to_owned());
                true
            }
            _ => return Err(format!("{event:?} though the queue has room")),
        };
        if self.teller.is_some() && !has_changed {
            return Err(format!("{channel} is {} twice", event.r#type.name()));
        }
        Ok(())
    }
}

impl Checkers {
    pub(in crate::world) fn read_events(&mut self, node: &str, events: &[OutgoingEvent]) {
        for event in events {
            if let Err(text) = self.occupancy.read(node, event) {
                let channel = event.channel.as_deref().unwrap_or_default().to_owned();
                self.broken("occupied and vacated alternate", text, vec![channel]);
            }
        }
    }

    /// The picture of the backend is that of the clients.
    pub(super) fn finish_occupancy(&mut self, world: &World) {
        if !world.plan.tuning.tells_channels {
            return;
        }
        let connected = world.clients.iter().filter(|it| it.state == ClientState::Connected);
        let subscriptions = connected.flat_map(|client| &client.subscriptions);
        let on = subscriptions.filter(|(_, it)| it.state == SubscriptionState::On);
        let expected: BTreeSet<String> = on.map(|(channel, _)| channel.clone()).collect();
        let occupied = &self.occupancy.occupied;
        if *occupied != expected {
            let text = format!("the backend knows {occupied:?}, subscribed are {expected:?}");
            let words = occupied.symmetric_difference(&expected).cloned().collect();
            self.broken("the backend knows which channels are occupied", text, words);
        }
    }
}
