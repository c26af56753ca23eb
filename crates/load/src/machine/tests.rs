//! Tests of what is read from the kernel.
//! In: this very process → out: plausible figures.
//! Uses `machine` only; asserts no speeds.
//! Parsing of /proc belongs here.

use std::process::{Command, Stdio};

use super::*;

#[test]
fn this_process_has_used_cpu_and_memory() {
    let pid = std::process::id();
    let resident = resident_bytes(pid).expect("this process runs");
    assert!(resident > 100_000);
    assert!(peak_resident_bytes(pid).expect("this process runs") >= resident / 2);
    assert!(cpu_seconds(pid).expect("this process runs") > 0.0);
    assert!(core_seconds(0).expect("there is a core 0") > 0.0);
    assert!(core_seconds(100_000).is_err());
}

#[test]
fn a_meter_divides_the_core_between_one_and_the_others() {
    // Not this process: threads of other tests end in the same time and their time counts.
    let mut other =
        Command::new("cat").stdin(Stdio::piped()).spawn().expect("every system has cat");
    let meter = Meter::start(other.id(), 0).expect("it runs until its input ends");
    let usage = meter.stop().expect("it still runs");
    assert!(usage.wall_seconds > 0.0 && usage.cpu_seconds >= 0.0 && usage.others_share() >= 0.0);
    drop(other.stdin.take());
    assert!(other.wait().expect("it was started").success());
}

#[test]
fn threads_that_end_meanwhile_count_nothing() {
    let pid = std::process::id();
    let churn =
        std::thread::spawn(|| (0..2_000).for_each(|_| drop(std::thread::spawn(|| ()).join())));
    while !churn.is_finished() {
        assert!(cpu_seconds(pid).expect("this process runs") > 0.0);
    }
    churn.join().expect("threads start");
}
