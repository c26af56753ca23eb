//! Fuzz target: bodies of the server API, alone and in a batch (server API §3).
//! Bytes of a body → nothing, or a panic that names the broken promise.
//! Uses `fanwire_api::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/api/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_api::fuzzing::body(data));
