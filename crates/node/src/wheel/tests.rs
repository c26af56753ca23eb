//! Tests of the timing wheel: by example, and against a sorted list with random operations.
//! In: timers set, moved and cleared, time passing → out: what fires when, and the announced deadlines.
//! Uses: nothing but the wheel; never a clock.
//! What a session does when its timer fires is tested in `tests/it`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Model of a wheel, by a sorted map: (tick, index).
#[derive(Default)]
struct Naive {
    due: BTreeMap<u32, u64>,
}

impl Naive {
    fn pop_all(&mut self, now: u64) -> Vec<u32> {
        let tick = now / TICK_MS;
        let mut fired: Vec<_> =
            self.due.iter().filter(|(_, due)| **due <= tick).map(|(i, due)| (*due, *i)).collect();
        fired.sort_unstable();
        self.due.retain(|_, due| *due > tick);
        fired.into_iter().map(|(_, index)| index).collect()
    }
}

fn pop_all(wheel: &mut Wheel, now: u64) -> Vec<u32> {
    std::iter::from_fn(|| wheel.pop(Moment(now))).collect()
}

#[test]
fn an_entry_takes_sixteen_bytes() {
    assert_eq!(size_of::<Entry>(), 16);
}

#[test]
fn a_timer_fires_once_and_never_early() {
    let mut wheel = Wheel::new();
    wheel.set(3, Moment(1_000));
    assert!(pop_all(&mut wheel, 999).is_empty());
    assert_eq!(pop_all(&mut wheel, 1_000 + TICK_MS), [3]);
    assert!(pop_all(&mut wheel, 1_000_000).is_empty());
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn a_moved_timer_fires_at_its_new_moment_only() {
    let mut wheel = Wheel::new();
    wheel.set(0, Moment(1_000));
    wheel.set(0, Moment(90_000));
    assert!(pop_all(&mut wheel, 80_000).is_empty());
    wheel.set(0, Moment(81_000));
    assert_eq!(pop_all(&mut wheel, 82_000), [0]);
}

#[test]
fn a_timer_in_the_past_fires_at_once() {
    let mut wheel = Wheel::new();
    assert!(pop_all(&mut wheel, 50_000).is_empty());
    wheel.set(1, Moment(10));
    assert_eq!(pop_all(&mut wheel, 50_000), [1]);
}

#[test]
fn never_clears() {
    let mut wheel = Wheel::new();
    wheel.set(1, Moment(10));
    wheel.set(1, Moment::NEVER);
    wheel.set(2, Moment::NEVER);
    wheel.clear(9);
    assert_eq!(wheel.next_deadline(), None);
    assert!(pop_all(&mut wheel, 1_000).is_empty());
}

#[test]
fn a_timer_beyond_the_reach_fires_early_and_does_not_get_lost() {
    let mut wheel = Wheel::new();
    wheel.set(0, Moment(u64::MAX - 1));
    assert_eq!(pop_all(&mut wheel, TICKS_MAX * TICK_MS), [0]);
}

#[derive(Clone, Debug)]
enum Step {
    Set { index: u32, in_ms: u64 },
    Clear { index: u32 },
    Advance { by_ms: u64 },
    AdvanceToDeadline,
}

fn step() -> impl Strategy<Value = Step> {
    let span = prop_oneof![0..200u64, 0..30_000u64, 0..4_000_000u64, 0..40_000_000_000u64];
    prop_oneof![
        4 => (0..40u32, span.clone()).prop_map(|(index, in_ms)| Step::Set { index, in_ms }),
        1 => (0..40u32).prop_map(|index| Step::Clear { index }),
        2 => span.prop_map(|by_ms| Step::Advance { by_ms }),
        1 => Just(Step::AdvanceToDeadline),
    ]
}

proptest! {
    #[test]
    fn a_wheel_fires_what_a_sorted_list_fires(steps in prop::collection::vec(step(), 1..200)) {
        let mut wheel = Wheel::new();
        let mut naive = Naive::default();
        let mut now = 0u64;
        for step in steps {
            match step {
                Step::Set { index, in_ms } => {
                    wheel.set(index, Moment(now + in_ms));
                    naive.due.insert(index, (now + in_ms).div_ceil(TICK_MS).max(now / TICK_MS));
                }
                Step::Clear { index } => {
                    wheel.clear(index);
                    naive.due.remove(&index);
                }
                Step::Advance { by_ms } => now += by_ms,
                Step::AdvanceToDeadline => {
                    let deadline = wheel.next_deadline();
                    prop_assert_eq!(deadline.is_none(), naive.due.is_empty());
                    let earliest = naive.due.values().min().map(|tick| tick * TICK_MS);
                    prop_assert!(deadline.map(|d| d.0) <= earliest, "a deadline comes too late");
                    now = now.max(deadline.map_or(0, |d| d.0));
                }
            }
            let fired = pop_all(&mut wheel, now);
            let expected = naive.pop_all(now);
            let mut sorted = fired.clone();
            sorted.sort_unstable();
            let mut expected_sorted = expected.clone();
            expected_sorted.sort_unstable();
            prop_assert_eq!(sorted, expected_sorted);
        }
    }
}
