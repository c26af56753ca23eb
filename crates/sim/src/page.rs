//! A run as a page to look at: one HTML file with nodes, links, clients and faults over time (`page.html` draws them).
//! In: the world four times a second, the plan, the verdict → out: the text of the file.
//! Uses the state of the world. Never: other files; the page works without a network.
//! Changed here: which facts a page has. How they look stands in `page.html`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{ClientState, SimulatedClient, SubscriptionState, WantedSubscription};
use crate::network::LinkId;
use crate::plan::SeedPlan;
use crate::world::{Verdict, World};

/// The state of the world at a time.
pub(crate) fn sample(world: &mut World) -> Value {
    let hosts: Vec<Value> = (0..world.hosts.len()).map(|number| host(world, number)).collect();
    let clients: Vec<Value> =
        (0..world.clients.len()).map(|number| client(world, number)).collect();
    let at = SAMPLE_INTERVAL * world.story.samples.len() as u32;
    json!({ "at": at.as_secs_f64(), "hosts": hosts, "clients": clients })
}

fn host(world: &World, number: usize) -> Value {
    let host = &world.hosts[number];
    let state = match (&host.process, &host.frozen) {
        (None, _) => "down",
        (Some(_), Some(_)) => "still",
        (Some(_), None) => "up",
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
        "host": world.host_of.get(&client.connection),
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

/// The page of a run.
pub fn html(title: &str, plan: &SeedPlan, verdict: &Verdict) -> String {
    let faults = plan.faults.iter().map(|fault| {
        let from = fault.at.as_secs_f64();
        let until = (fault.at + fault.lasts).as_secs_f64();
        json!({ "from": from, "until": until, "text": format!("{:?}", fault.kind) })
    });
    let until = plan.busy + AFTERWARDS;
    let is_early = |sample: &&Value| sample["at"].as_f64() < Some(until.as_secs_f64());
    let samples: Vec<&Value> = verdict.story.samples.iter().filter(is_early).collect();
    let broken = verdict.violation.as_ref().map(|it| format!("{}: {}", it.promise, it.text));
    let run = json!({
        "title": title,
        "seed": plan.seed,
        "faults": faults.collect::<Vec<_>>(),
        "broken": broken,
        "lines": verdict.story.lines_to_look_at(),
        "samples": samples,
    });
    let text = run.to_string().replace("</", "<\\/");
    include_str!("page.html").replace("RUN_AS_JSON", &text)
}

/// The time between two samples.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
/// A page ends this long after clients and backends were busy.
const AFTERWARDS: Duration = Duration::from_secs(15);
