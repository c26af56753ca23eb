//! Tests of what is read from the kernel.
//! In: this very process → out: plausible figures.
//! Uses `machine` only; asserts no speeds.
//! Parsing of /proc belongs here.

use super::*;

#[test]
fn this_process_has_used_cpu_and_memory() {
    let pid = std::process::id();
    assert!(resident_bytes(pid).expect("this process runs") > 100_000);
    assert!(cpu_seconds(pid).expect("this process runs") > 0.0);
    assert!(core_seconds(0).expect("there is a core 0") > 0.0);
    assert!(core_seconds(100_000).is_err());
}

#[test]
fn a_meter_divides_the_core_between_one_and_the_others() {
    let meter = Meter::start(std::process::id(), 0).expect("this process runs");
    let usage = meter.stop().expect("this process runs");
    assert!(usage.wall_seconds > 0.0 && usage.cpu_seconds >= 0.0 && usage.others_share >= 0.0);
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
