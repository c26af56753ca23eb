//! Events out of hosts: which channels are occupied, sent in batches to a backend that sometimes fails before or after it has read one.
//! In: the events of a process → out: batches for the checkers, answers for the process.
//! Uses the pure side of `fanwire-events`. Never: requests, sockets.
//! Changed here: when a batch is sent, and how the backend fails.

use fanwire_auth::Secret;
use fanwire_events::{
    Events, EventsOptions, EventsRedisStreamOptions, OutgoingEvent, WATCH_INTERVAL,
};

use super::carry::running;
use super::{Origin, World, WorldEvent};
use crate::network::LinkId;
use crate::plan::VACATED_DELAY;

/// A batch of events on its way to the backend.
pub struct SentEvents {
    pub origin: Origin,
    pub node: String,
    pub events: Vec<OutgoingEvent>,
}

/// The events of a process. Nothing connects to the address.
pub(super) fn new_events() -> Events {
    let address = Secret::from("redis://backend".to_owned());
    let redis_stream = EventsRedisStreamOptions { address, ..EventsRedisStreamOptions::default() };
    let types = ["occupied", "vacated", "recount_started", "recount_ended", "lost"];
    let options = EventsOptions {
        redis_stream,
        types: types.map(str::to_owned).into(),
        batch_size: 20,
        queue_max: 1000,
        vacated_delay: VACATED_DELAY,
        ..EventsOptions::default()
    };
    let events = Events::new(&options).expect("the options are good");
    events.expect("they name a place")
}

/// A process looks at the other nodes, and sends its next events unless a batch is on its way.
pub(super) fn watch(world: &mut World, origin: Origin) {
    if !world.is_running(origin) {
        return;
    }
    let now = world.instant();
    world.queue.at(world.now + WATCH_INTERVAL, WorldEvent::Watch(origin));
    let Some(process) = &mut world.hosts[origin.host].process else { return };
    let Some(reporter) = process.reporter.as_mut().filter(|_| !process.is_leaving) else { return };
    reporter.watch.look(&process.node, now);
    if !reporter.is_sending {
        let events = reporter.events.next_batch();
        let node = process.node.uid().to_owned();
        reporter.is_sending = !events.is_empty();
        if reporter.is_sending {
            let batch = WorldEvent::Events(Box::new(SentEvents { origin, node, events }));
            world.send(LinkId::ToBackend(origin.host), batch);
        }
    }
    world.settle(origin.host);
}

/// A batch arrives at the backend.
pub(super) fn receive(world: &mut World, sent: &SentEvents) {
    let SentEvents { origin, node, events } = sent;
    let is_read = !world.backend.random.percent(10);
    let is_answered = is_read && !world.backend.random.percent(10);
    if is_read {
        for event in events {
            let channel = event.channel.as_deref().unwrap_or_default();
            let name = event.r#type.name();
            world.story.tell(
                world.now,
                format_args!("backend reads {name} {channel} of h{}", origin.host),
            );
        }
        world.check(|checkers, _| checkers.read_events(node, events));
    }
    let count = if is_answered { events.len() } else { 0 };
    let answer = WorldEvent::EventsAnswered { origin: *origin, count };
    world.send(LinkId::FromBackend(origin.host), answer);
}

/// The answer arrives at the process: what was not accepted is sent again.
pub(super) fn answered(world: &mut World, origin: Origin, count: usize) {
    if let Some(reporter) = running(world, origin).and_then(|it| it.reporter.as_mut()) {
        reporter.is_sending = false;
        reporter.events.accepted(count);
    }
}
