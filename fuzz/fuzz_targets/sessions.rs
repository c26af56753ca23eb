//! Fuzz target: two sessions, another node and time (client protocol §5).
//! Bytes (the first chooses options) cut into steps → nothing, or a panic that names the broken promise.
//! Uses `fanwire_node::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/node/src/fuzzing/session.rs`.
#![forbid(unsafe_code)]
#![no_main]

use std::time::Instant;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_node::fuzzing::sessions(data, Instant::now()));
