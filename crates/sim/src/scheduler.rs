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
    entries: BinaryHeap<ScheduledEntry<E>>,
    random: SeededRandom,
    count: u64,
}

struct ScheduledEntry<E> {
    at: Duration,
    /// Drawn for events of one moment; then the order in which they were scheduled.
    rank: (u64, u64),
    event: E,
}

impl<E> Scheduler<E> {
    pub fn new(random: SeededRandom) -> Self {
        Self { entries: BinaryHeap::new(), random, count: 0 }
    }

    /// Schedules an event at a time since the start.
    pub fn at(&mut self, at: Duration, event: E) {
        self.count += 1;
        let rank = (self.random.bits(), self.count);
        self.entries.push(ScheduledEntry { at, rank, event });
    }

    /// Takes the next event with its time.
    pub fn take_next(&mut self) -> Option<(Duration, E)> {
        self.entries.pop().map(|entry| (entry.at, entry.event))
    }
}

impl<E> Ord for ScheduledEntry<E> {
    /// The largest entry of a heap comes first, so the earliest one is the largest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.rank).cmp(&(self.at, self.rank))
    }
}

impl<E> PartialOrd for ScheduledEntry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for ScheduledEntry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for ScheduledEntry<E> {}
