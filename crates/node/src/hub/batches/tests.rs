//! A batch is due by size or by time.
//! In: broadcasts of channels at chosen times → out: which are taken, and when.
//! Pure.
//! Deliveries of batches are tested in `tests/it/batches.rs`.

use std::time::Duration;

use fanwire_broker::Epoch;
use fanwire_policy::channel::NamespaceId;
use fanwire_protocol::Publication;

use super::*;

const MS: Duration = Duration::from_millis(1);

/// Batches of one namespace, and the time.
struct World {
    batches: Batches,
    options: BatchOptions,
    start: Instant,
}

impl World {
    fn new(max_size: usize, delay_ms: u32) -> Self {
        let options = BatchOptions { max_size, max_delay: MS * delay_ms, flush_latest: false };
        Self { batches: Batches::default(), options, start: Instant::now() }
    }

    fn push(&mut self, channel: &str, offset: u64, at_ms: u32) {
        let now = self.start + MS * at_ms;
        let publication = Publication { offset, ..Publication::default() };
        let namespace = NamespaceId::default();
        let broadcast =
            Broadcast::new(channel.into(), namespace, publication, Epoch::default(), now);
        self.batches.push(&Arc::new(broadcast), self.options, now);
    }

    /// The offsets of every batch that is due.
    fn due(&mut self, at_ms: u32) -> Vec<Vec<u64>> {
        let now = self.start + MS * at_ms;
        let batches = std::iter::from_fn(|| self.batches.pop_due(now));
        batches.map(|batch| batch.iter().map(|one| one.position().offset).collect()).collect()
    }

    fn deadline_ms(&self) -> Option<u128> {
        self.batches.next_deadline().map(|at| (at - self.start).as_millis())
    }
}

#[test]
fn a_batch_is_due_at_its_size() {
    let mut world = World::new(3, 10);
    world.push("a", 1, 0);
    world.push("a", 2, 1);
    assert_eq!((world.due(1).len(), world.deadline_ms()), (0, Some(10)));
    world.push("a", 3, 2);
    // What comes in the same turn goes along.
    world.push("a", 4, 2);
    assert_eq!(world.due(2), [[1, 2, 3, 4]]);
    world.push("a", 5, 3);
    assert!(world.due(10).is_empty(), "that was the time of the batch before");
    assert_eq!(world.due(13), [[5]]);
    assert_eq!(world.deadline_ms(), None);
}

#[test]
fn a_batch_is_due_when_its_first_has_waited_long_enough() {
    let mut world = World::new(0, 10);
    world.push("a", 1, 0);
    world.options.max_delay = MS * 5;
    world.push("b", 7, 1);
    world.push("a", 2, 9);
    assert_eq!((world.due(5).len(), world.deadline_ms()), (0, Some(6)));
    assert_eq!(world.due(10), [vec![7], vec![1, 2]]);
    assert!(world.due(99).is_empty());
}

#[test]
fn of_a_batch_only_the_newest_is_left_when_that_is_asked_for() {
    let mut world = World::new(3, 10);
    world.options.flush_latest = true;
    for offset in 1..=3 {
        world.push("a", offset, 0);
    }
    assert_eq!(world.due(0), [[3]], "those that were replaced count for the size");
    world.push("a", 4, 1);
    world.push("a", 5, 2);
    assert_eq!(world.due(11), [[5]]);
}

#[test]
fn a_batch_is_bounded_whatever_the_options_say() {
    let mut world = World::new(0, 10_000);
    for offset in 0..BATCH_MAX as u64 {
        assert!(world.due(1).is_empty());
        world.push("a", offset, 1);
    }
    assert_eq!(world.due(1)[0].len(), BATCH_MAX);
}

#[test]
fn a_batch_is_taken_before_its_time_to_compare_positions() {
    let mut world = World::new(0, 10);
    world.push("a", 1, 0);
    assert_eq!(world.batches.take("a").len(), 1);
    assert!(world.batches.take("a").is_empty() && world.due(10).is_empty());
}
