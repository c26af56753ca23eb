//! Fuzz target: offers of extensions (RFC 7692 §7).
//! Text, one header value per line → nothing, or a panic that names the broken promise.
//! Uses `fanwire_ws::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/ws/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_ws::fuzzing::negotiation(data));
