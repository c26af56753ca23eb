//! Tests of `trial`: what is concluded from the publications of made-up channels.
//! Publications → depth, whether more or less would pay, and what context saves.
//! Uses `gap` only; on real corpora `fanwire tune` prints bytes.
//! Changed here: cases of conclusions.

use super::*;

#[test]
fn a_state_that_changes_little_needs_one_publication() {
    let trial = run(8_192, 12, |at| {
        let rows = (0..40).map(|row| format!(r#"{{"row":{row},"v":{}}}"#, (row == at) as u8));
        rows.collect::<String>().into_bytes()
    });
    assert_eq!(trial.depth(), 1);
    assert!(!trial.wants_more(), "{trial:?}");
    assert!(trial.saved() > 50, "{} bytes saved", trial.saved());
    assert!(!trial.is_incompressible());
}

#[test]
fn a_channel_of_four_states_in_turn_needs_four() {
    let trial = run(8_192, 40, |at| noise(at % 4, 300));
    assert_eq!(trial.depth(), 4);
    assert!(trial.saved() > 200, "{} bytes saved", trial.saved());
}

#[test]
fn a_history_whose_older_half_has_the_likes_wants_more() {
    let states = |at| noise(at % 16, 300);
    assert!(run(4_096, 60, states).wants_less(), "no state comes back in it");
    let trial = run(8_192, 90, states);
    assert!(trial.wants_more(), "{trial:?}");
    assert!(!trial.wants_less(), "{trial:?}");
    assert!(!run(32_768, 400, states).wants_more(), "there is no larger one");
}

#[test]
fn a_history_with_room_for_one_publication_wants_more_and_not_back() {
    let states = |at: usize| [&noise(1, 700)[..], at.to_string().as_bytes()].concat();
    assert!(run(1_024, 20, states).wants_more());
    let trial = run(2_048, 20, states);
    assert!(!trial.wants_more() && !trial.wants_less(), "{trial:?}");
    assert!(run(8_192, 40, states).wants_less());
}

#[test]
fn noise_is_incompressible_until_it_repeats() {
    let trial = run(4_096, 20, |at| noise(at, 300));
    assert!(trial.is_incompressible());
    assert_eq!(trial.saved(), 0);
    assert!(!run(4_096, 20, |at| noise(at % 2, 300)).is_incompressible());
}

#[test]
fn a_trial_of_another_size_begins_anew() {
    let mut sum = run(1_024, 20, |at| noise(at % 2, 300));
    let other = run(2_048, 20, |at| noise(at % 2, 300));
    sum.add(&other);
    assert_eq!(sum, other);
}

#[test]
fn once_a_history_is_full_only_depths_that_are_always_held_count() {
    let bytes = |at: usize| if at % 40 < 20 { 200 } else { 350 };
    let mut counts = Vec::new();
    each(2_048, 120, |at| noise(at % 4, bytes(at)), |trial| counts.push(trial.depths));
    let least = *counts[20..].iter().min().expect("a hundred of them");
    assert!(counts[20..].contains(&(least + 1)), "{counts:?}");
    let sum = run(2_048, 120, |at| noise(at % 4, bytes(at)));
    assert_eq!((sum.depths, sum.count), (least, Trial::COUNT_MAX));
}

#[test]
fn the_sum_of_many_trials_stays_bounded_and_follows_the_channel() {
    let noisy = one(4_096, 60, |at| noise(at, 300));
    let repeating = one(4_096, 60, |at| noise(at % 2, 300));
    let mut sum = noisy;
    assert!(sum.count <= Trial::COUNT_MAX, "{sum:?}");
    (0..1_000).for_each(|_| sum.add(&noisy));
    assert!(sum.count <= Trial::COUNT_MAX, "{sum:?}");
    assert_eq!(sum.saved(), 0);
    (0..40).for_each(|_| sum.add(&repeating));
    assert!(sum.saved() > 250, "{} bytes saved", sum.saved());
}

#[test]
fn a_publication_that_is_gone_has_no_trial() {
    let mut history = History::new(512, 4, 6);
    let first = history.publish(&noise(0, 300)).expect("a usual length");
    assert!(history.trial(&first).is_some());
    (1..5).for_each(|at| assert!(history.publish(&noise(at, 300)).is_some()));
    assert!(history.trial(&first).is_none());
}

/// The sum of the trials of the last publications of a channel.
fn run(bytes_max: usize, count: usize, message: impl Fn(usize) -> Vec<u8>) -> Trial {
    let mut sum = Trial::default();
    each(bytes_max, count, message, |trial| sum.add(&trial));
    sum
}

/// The trial of the last publication.
fn one(bytes_max: usize, count: usize, message: impl Fn(usize) -> Vec<u8>) -> Trial {
    let mut last = Trial::default();
    each(bytes_max, count, message, |trial| last = trial);
    last
}

fn each(
    bytes_max: usize,
    count: usize,
    message: impl Fn(usize) -> Vec<u8>,
    mut take: impl FnMut(Trial),
) {
    let mut history = History::new(bytes_max, 4, 6);
    for at in 0..count {
        let publication = history.publish(&message(at)).expect("a usual length");
        take(history.trial(&publication).expect("the newest one"));
    }
}

/// Bytes without a pattern, the same for the same seed.
fn noise(seed: usize, bytes: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(bytes).collect()
}
