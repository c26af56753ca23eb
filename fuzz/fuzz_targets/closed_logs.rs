//! Fuzz target: files with the logs of connections that ended.
//! Bytes of a file → nothing, or a panic.
//! Uses `fanwire_node::read_closed_logs` only; property tests of its module read any bytes on stable.
//! Changed here: nothing. The format is in `crates/recorder/src/log_file.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let damaged = fanwire_node::read_closed_logs(data, |_, _| {});
    assert!(damaged <= data.len());
});
