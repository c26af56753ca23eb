//! Fuzz target: request messages of the server API over gRPC, alone and in a batch (server API §5).
//! A byte that names a method, and bytes of its message → nothing, or a panic that names the broken promise.
//! Uses `fanwire_api::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/api/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_api::fuzzing::message(data));
