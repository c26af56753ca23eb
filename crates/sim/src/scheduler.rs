//! What happens next: the earliest event, and of several at one time the one that the seed prefers.
//! In: events with their times → out: the same events, one after another.
//! Pure. Never: the meaning of an event.
//! Changed here: the order of events of one moment.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::chance::SeededRandom;

/// Events that have not happened yet.
pub struct Scheduler<E> {
    entries: BinaryHeap<ScheduledEntry>,
    /// The events themselves, which the heap does not move.
    events: Vec<Option<E>>,
    free: Vec<usize>,
    random: SeededRandom,
    count: u64,
}

struct ScheduledEntry {
    at: Duration,
    /// Drawn for events of one moment; then the order in which they were scheduled.
    rank: (u64, u64),
    /// Its place in the list of events.
    place: usize,
}

impl<E> Scheduler<E> {
    pub fn new(random: SeededRandom) -> Self {
        let entries = BinaryHeap::new();
        Self { entries, events: Vec::new(), free: Vec::new(), random, count: 0 }
    }

    /// Schedules an event at a time since the start.
    pub fn at(&mut self, at: Duration, event: E) {
        self.count += 1;
        let rank = (self.random.bits(), self.count);
        let place = self.free.pop().unwrap_or(self.events.len());
        if place == self.events.len() {
            self.events.push(None);
        }
        self.events[place] = Some(event);
        self.entries.push(ScheduledEntry { at, rank, place });
    }

    /// Takes the next event with its time.
    pub fn take_next(&mut self) -> Option<(Duration, E)> {
        let entry = self.entries.pop()?;
        self.free.push(entry.place);
        let event = self.events[entry.place].take()?;
        Some((entry.at, event))
    }
}

impl Ord for ScheduledEntry {
    /// The largest entry of a heap comes first, so the earliest one is the largest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.rank).cmp(&(self.at, self.rank))
    }
}

impl PartialOrd for ScheduledEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ScheduledEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ScheduledEntry {}
