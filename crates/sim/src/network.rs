//! Links: each one carries messages in one direction, in order, late, and not at all while it is cut.
//! In: messages with the link that they take → out: the time at which each arrives, or the messages that wait for a cut to end.
//! Pure. Never: the content of a message. A stream of bytes loses nothing: what a network loses there arrives later.
//! Changed here: delays. Cuts and slow links are faults (`faults.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::chance::SeededRandom;

/// A link, by who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkId {
    /// Calls of a host to the engine.
    ToEngine(usize),
    /// Answers of the engine.
    FromEngine(usize),
    /// PUB/SUB messages of the engine, on a connection of their own.
    Feed(usize),
    /// Events of a host.
    ToBackend(usize),
    /// Answers of the backend that gets events.
    FromBackend(usize),
    /// Frames of a client.
    ToHost(usize),
    /// Frames to a client.
    ToClient(usize),
}

/// All links, with the messages `M` that wait in those that are cut.
pub struct Network<M> {
    links: BTreeMap<LinkId, Link<M>>,
    random: SeededRandom,
    /// Longest delay to and from the engine, in milliseconds.
    engine_delay: u64,
}

struct Link<M> {
    /// Milliseconds.
    delay: (u64, u64),
    /// Added to every delay, while a fault makes the link slow.
    slowness: Duration,
    is_cut: bool,
    last_arrival: Duration,
    waiting: Vec<M>,
    /// Messages that were sent since they were counted last.
    count: u32,
}

impl<M> Network<M> {
    pub fn new(random: SeededRandom, engine_delay: u64) -> Self {
        Self { links: BTreeMap::new(), random, engine_delay }
    }

    /// Sends a message. Returns it with the time of its arrival, unless the link is cut.
    pub fn send(&mut self, id: LinkId, message: M, now: Duration) -> Option<(Duration, M)> {
        let engine_delay = self.engine_delay;
        let link = self.links.entry(id).or_insert_with(|| Link::new(id, engine_delay));
        if link.is_cut {
            link.waiting.push(message);
            return None;
        }
        link.count += 1;
        let (least, most) = link.delay;
        let mut delay = self.random.between_ms(least, most);
        if self.random.percent(1) {
            delay += self.random.between_ms(200, 800); // a segment was lost and sent again
        }
        let after_last = link.last_arrival + Duration::from_nanos(1);
        link.last_arrival = after_last.max(now + delay + link.slowness);
        Some((link.last_arrival, message))
    }

    /// Cuts a link: what is sent from now on waits.
    pub fn cut(&mut self, id: LinkId) {
        self.link(id).is_cut = true;
    }

    /// Mends a link. Returns the messages that wait, which have to be sent again.
    pub fn mend(&mut self, id: LinkId) -> Vec<M> {
        let link = self.link(id);
        link.is_cut = false;
        std::mem::take(&mut link.waiting)
    }

    /// Makes a link slower by a time, or as fast as before by none.
    pub fn slow_down(&mut self, id: LinkId, slowness: Duration) {
        self.link(id).slowness = slowness;
    }

    pub fn is_cut(&self, id: LinkId) -> bool {
        self.links.get(&id).is_some_and(|link| link.is_cut)
    }

    /// How many messages wait for the end of a cut.
    pub fn count_waiting(&self, id: LinkId) -> usize {
        self.links.get(&id).map_or(0, |link| link.waiting.len())
    }

    /// How many messages a link carried since the last call.
    pub fn take_count(&mut self, id: LinkId) -> u32 {
        std::mem::take(&mut self.link(id).count)
    }

    fn link(&mut self, id: LinkId) -> &mut Link<M> {
        self.links.entry(id).or_insert_with(|| Link::new(id, self.engine_delay))
    }
}

/// The least and the longest delay of a link in milliseconds.
fn delay_of(id: LinkId, engine_delay: u64) -> (u64, u64) {
    match id {
        LinkId::ToEngine(_) | LinkId::FromEngine(_) | LinkId::Feed(_) => {
            (engine_delay / 3, engine_delay)
        }
        LinkId::ToBackend(_) | LinkId::FromBackend(_) => (1, 300),
        LinkId::ToHost(_) | LinkId::ToClient(_) => (5, 60),
    }
}

impl<M> Link<M> {
    fn new(id: LinkId, engine_delay: u64) -> Self {
        let waiting = Vec::new();
        Self {
            delay: delay_of(id, engine_delay),
            slowness: Duration::ZERO,
            is_cut: false,
            last_arrival: Duration::ZERO,
            waiting,
            count: 0,
        }
    }
}
