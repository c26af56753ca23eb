//! Fuzz target: publications to one client in context, among other traffic (RFC 7692 §7.1.1.1).
//! Bytes, the first three of which are settings → nothing, or a panic that names the broken promise.
//! Uses `fanwire_deflate::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/deflate/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_deflate::fuzzing::gap(data));
