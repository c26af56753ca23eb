//! Tests of the values of `/proc`.
//! In: lines as the kernel writes them → out: bytes, ticks, seconds.
//! Uses text alone.
//! Changed here: expectations of `metrics::process`.

use super::*;

#[test]
fn a_field_in_kilobytes_is_found_by_its_whole_name() {
    let status = "VmRSSx:\t1 kB\nVmRSS:\t    2048 kB\nThreads:\t7\n";
    assert_eq!(field_bytes(status, "VmRSS"), Some(2 << 20));
    assert_eq!(field_bytes(status, "Threads"), None, "no unit");
    assert_eq!(field_bytes(status, "VmHWM"), None);
}

#[test]
fn times_are_found_after_a_name_with_parentheses() {
    let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 2 3 4 500 60 8 9 20 0 13 0 987 1000 10";
    assert_eq!(Times::of(stat), Some(Times { cpu_ticks: 560, started_ticks: 987 }));
    assert_eq!(Times::of("7 (a) S 1"), None);
    assert_eq!(boot_second("cpu 1 2\nbtime 1764115200\nx 1\n"), Some(1_764_115_200));
}

#[test]
fn the_path_of_a_cgroup_is_that_of_version_2() {
    assert_eq!(
        cgroup_path("4:memory:/old\n0::/system.slice/fanwire.service\n"),
        Some("/system.slice/fanwire.service")
    );
    assert_eq!(cgroup_path("4:memory:/old\n"), None);
}

#[test]
fn the_resident_memory_of_this_process_is_below_its_limit() {
    let resident = resident_bytes().expect("a Linux system");
    let limit = memory_limit_bytes().expect("a Linux system");
    assert!((1..limit).contains(&resident), "{resident} of {limit}");
}
