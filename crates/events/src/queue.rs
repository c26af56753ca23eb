//! The queue of events: bounded, numbered, with the count of those that did not fit at the point where they are missing.
//! In: events → out: batches, until they are removed.
//! Uses values only. Never: sends.
//! Changed here: what happens when the queue is full.

use std::collections::VecDeque;

use crate::event::OutgoingEvent;

#[derive(Debug)]
pub(crate) struct EventQueue {
    events: VecDeque<OutgoingEvent>,
    max: usize,
    seq: u64,
    /// Events that did not fit since the last one that did.
    missing: u64,
    lost: u64,
}

impl EventQueue {
    pub(crate) fn new(max: usize) -> Self {
        Self { events: VecDeque::new(), max: max.max(1), seq: 0, missing: 0, lost: 0 }
    }

    /// Adds an event with the next number. A full queue counts it instead: the events before the gap stay true.
    /// Returns whether it was added.
    pub(crate) fn push(&mut self, event: OutgoingEvent, time: u64) -> bool {
        if self.events.len() >= self.max {
            self.missing += 1;
            self.lost += 1;
            return false;
        }
        self.tell_missing(time);
        self.add(event, time);
        true
    }

    /// The first events. An event about missing ones is the last of a queue that is no longer full.
    pub(crate) fn batch(&mut self, max: usize, time: u64) -> Vec<&OutgoingEvent> {
        if self.events.len() < self.max {
            self.tell_missing(time);
        }
        self.events.iter().take(max).collect()
    }

    /// The first `count` events have arrived. Returns how many of them are about occupied channels.
    pub(crate) fn remove(&mut self, count: usize) -> u64 {
        let arrived = self.events.drain(..count);
        arrived.filter(|event| event.r#type.is_of_occupancy()).count() as u64
    }

    /// Events that fit into it. A part stays free for clients.
    pub(crate) fn room(&self) -> usize {
        (self.max - self.max / 4).saturating_sub(self.events.len())
    }

    /// The number of the last event.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    fn tell_missing(&mut self, time: u64) {
        let missing = std::mem::take(&mut self.missing);
        if missing > 0 {
            self.add(OutgoingEvent::lost(missing), time);
        }
    }

    fn add(&mut self, event: OutgoingEvent, time: u64) {
        self.seq += 1;
        self.events.push_back(OutgoingEvent { seq: self.seq, time, ..event });
    }
}

#[cfg(test)]
mod tests;
