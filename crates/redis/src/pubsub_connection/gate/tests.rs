//! Tests of the gate of a takeover.
//! In: messages with a mark among them → out: those that pass in the old program, and in the new one.
//! Uses: nothing. Never: a Redis, which `crates/cli/tests/it/takeover.rs` starts.
//! Changed here: what passes.

use std::time::{Duration, Instant};

use super::*;

fn mark() -> Mark {
    Mark { name: "fanwire.takeover.a".into(), value: "7".into() }
}

/// Which of these messages pass: one, marks of others, one, the mark, one.
fn passing(gate: &Gate) -> [bool; 6] {
    let messages: [(&[u8], &[u8]); 6] = [
        (b"fanwire.feed.{:news}", b"7"),
        (b"fanwire.takeover.b", b"7"),
        (b"fanwire.takeover.a", b"6"),
        (b"fanwire.feed.{:news}", b"8"),
        (b"fanwire.takeover.a", b"7"),
        (b"fanwire.feed.{:news}", b"9"),
    ];
    messages.map(|(name, message)| gate.passes(name, message))
}

#[test]
fn all_pass_without_a_takeover() {
    let gate = Gate::default();
    assert_eq!(passing(&gate), [true; 6]);
    assert!(!gate.is_watched() && !gate.is_shut());
}

#[test]
fn in_the_old_program_messages_pass_up_to_the_mark() {
    let gate = Gate::default();
    gate.shut_at(mark());
    assert!(!gate.wait_until_shut(Instant::now()));
    assert_eq!(passing(&gate), [true, true, true, true, false, false]);
    assert!(gate.wait_until_shut(Instant::now()));
    assert!(gate.open() == Some(mark()));
    assert_eq!(passing(&gate), [true; 6]);
}

#[test]
fn in_the_new_program_none_pass_before_it_runs_on() {
    let gate = Gate::default();
    gate.drop_until_mark();
    gate.shut_at(mark());
    assert!(gate.is_watched());
    assert_eq!(passing(&gate), [false; 6]);
    assert!(gate.is_shut());
    gate.open();
    assert!(gate.passes(b"fanwire.feed.{:news}", b"9"));
}

#[test]
fn who_waits_hears_of_the_mark() {
    let gate = Gate::default();
    gate.shut_at(mark());
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| gate.wait_until_shut(Instant::now() + Duration::from_secs(60)));
        passing(&gate);
        assert!(waiting.join().expect("no panic"));
    });
}
