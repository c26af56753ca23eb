//! Tests of the fields of `/proc/self/status`.
//! In: lines as the kernel writes them → out: bytes.
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
