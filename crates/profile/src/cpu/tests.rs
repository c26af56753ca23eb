//! Tests of CPU profiles of a thread that does nothing but compute.
//! In: a busy thread, for about half a second → out: what a reader finds in the file.
//! Uses the timer of the process, so there is one test.
//! Changed here: expectations of `cpu`.

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::testing::{decode, names, text};

/// Computes for 600 ms.
#[inline(never)]
fn compute_for_the_profile() -> u64 {
    let (started, mut state) = (Instant::now(), 1_u64);
    while started.elapsed() < Duration::from_millis(600) {
        for _ in 0..100_000 {
            state = std::hint::black_box(state.wrapping_mul(31).wrapping_add(7));
        }
    }
    state
}

#[test]
fn a_profile_names_what_the_process_computes_and_a_second_one_at_the_same_time_is_refused() {
    let (start, started) = mpsc::channel();
    let (computed, has_computed) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name("busy".to_owned()).spawn(move || {
        started.recv().expect("the recording runs");
        computed.send(compute_for_the_profile()).expect("the test waits");
        // Its name is looked up when the recording ends.
        let _ = ended.recv();
    });
    let recording = Recording::start().expect("no other profile");
    assert!(matches!(Recording::start(), Err(CpuProfileError::Busy)));
    start.send(()).expect("the thread waits");
    has_computed.recv().expect("a result");
    let profile = decode(&recording.finish());
    drop(end);
    thread.expect("a thread").join().expect("no panic");

    let kinds: Vec<_> = profile
        .sample_type
        .iter()
        .map(|kind| (text(&profile, kind.r#type), text(&profile, kind.unit)))
        .collect();
    assert_eq!(kinds, [("samples", "count"), ("cpu", "nanoseconds")]);
    assert_eq!(profile.period, 10_000_000);
    let computing = profile.sample.iter().filter(|sample| {
        let is_busy = sample.label.iter().any(|label| text(&profile, label.str) == "busy");
        let names = names(&profile, sample);
        let at = names.iter().position(|name| name.ends_with("compute_for_the_profile"));
        // The thread's outermost functions are found, too: the stack was unwound to its end.
        is_busy && at.is_some_and(|at| names[at..].iter().any(|name| name.contains("thread")))
    });
    let cpu_ns: i64 = computing.map(|sample| sample.value[1]).sum();
    assert!(cpu_ns >= 50_000_000, "at least five samples in 600 ms: {cpu_ns}");

    drop(Recording::start().expect("the first one has ended"));
    assert!(Recording::start().is_ok(), "dropping ends it");
}
