//! The state of the world four times a second, for a page.
//! In: the world → out: values in JSON, added to its story.
//! Uses the world's parts. Never: changes anything but counts of messages.
//! Changed here: what a page knows of hosts and clients. `page.rs` makes the page.

use std::time::Duration;

use serde_json::{Value, json};

use super::World;
use crate::client::{ClientState, SimulatedClient, SubscriptionState, WantedSubscription};
use crate::network::LinkId;

/// Adds the states since the last sample; nothing happened in between.
pub(super) fn take_samples(world: &mut World) {
    while SAMPLE_INTERVAL * world.story.samples.len() as u32 <= world.now {
        let sample = sample(world);
        world.story.samples.push(sample);
    }
}

fn sample(world: &mut World) -> Value {
    let hosts: Vec<Value> = (0..world.hosts.len()).map(|number| host(world, number)).collect();
    let clients: Vec<Value> =
        (0..world.clients.len()).map(|number| client(world, number)).collect();
    let at = SAMPLE_INTERVAL * world.story.samples.len() as u32;
    json!({ "at": at.as_secs_f64(), "hosts": hosts, "clients": clients })
}

fn host(world: &World, number: usize) -> Value {
    let host = &world.hosts[number];
    let state = match (&host.process, host.is_frozen) {
        (None, _) => "down",
        (Some(_), true) => "still",
        (Some(_), false) => "up",
    };
    let is_cut = [LinkId::ToEngine(number), LinkId::FromEngine(number), LinkId::Feed(number)]
        .map(|link| world.network.is_cut(link));
    let has_feed = host.process.as_ref().is_some_and(|process| process.feed.is_open);
    json!({ "state": state, "cut": is_cut.contains(&true), "feed": has_feed })
}

fn client(world: &mut World, number: usize) -> Value {
    let messages = world.network.take_count(LinkId::ToClient(number));
    let links = [LinkId::ToHost(number), LinkId::ToClient(number)];
    let is_cut = links.into_iter().any(|link| world.network.is_cut(link));
    let client = &world.clients[number];
    let state = match client.state {
        ClientState::Waiting => "away",
        ClientState::Connecting => "connecting",
        ClientState::Connected => "connected",
        ClientState::Ended(_) => "ended",
    };
    json!({
        "state": state,
        "host": world.host_of(client.connection),
        "cut": is_cut,
        "behind": behind(world, client),
        "messages": messages,
    })
}

/// How many publications the engine has stored that a client has not received in its channels.
fn behind(world: &World, client: &SimulatedClient) -> u64 {
    // A filter leaves out publications that the client does not wait for.
    let is_wanted =
        |it: &WantedSubscription| it.state != SubscriptionState::Off && it.filter.is_empty();
    let wanted = client.subscriptions.iter().filter(|(_, it)| is_wanted(it));
    let counts = wanted.filter_map(|(channel, subscription)| {
        let at = subscription.position.as_ref()?;
        Some(world.engine.top(channel)?.offset.saturating_sub(at.offset))
    });
    counts.sum()
}

/// The time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
