//! What happens next: the earliest event, and of several at one time the one that the seed prefers.
//! In: events with their times → out: the same events, one after another.
//! Pure. Never: the meaning of an event.
//! Changed here: the order of events of one moment.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::chance::SeededRandom;

/// Events that have not happened yet.
pub struct Scheduler<E> {
    entries: BinaryHeap<Reverse<ScheduledEntry>>,
    /// The events themselves, which the heap does not move.
    events: Vec<Option<E>>,
    free: Vec<usize>,
    random: SeededRandom,
}

/// Entries are compared by their fields in this order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ScheduledEntry {
    /// Nanoseconds since the start: one number is compared faster than a `Duration`.
    at: u64,
    /// Drawn for events of one moment.
    rank: u64,
    /// Its place in the list of events.
    place: usize,
}

impl<E> Scheduler<E> {
    pub fn new(random: SeededRandom) -> Self {
        Self { entries: BinaryHeap::new(), events: Vec::new(), free: Vec::new(), random }
    }

    /// Schedules an event at a time since the start.
    pub fn at(&mut self, at: Duration, event: E) {
        let place = self.free.pop().unwrap_or(self.events.len());
        if place == self.events.len() {
            self.events.push(None);
        }
        self.events[place] = Some(event);
        let at = at.as_nanos() as u64;
        let rank = self.random.bits();
        self.entries.push(Reverse(ScheduledEntry { at, rank, place }));
    }

    /// Takes the next event with its time.
    pub fn take_next(&mut self) -> Option<(Duration, E)> {
        let Reverse(entry) = self.entries.pop()?;
        self.free.push(entry.place);
        let event = self.events[entry.place].take()?;
        Some((Duration::from_nanos(entry.at), event))
    }
}
