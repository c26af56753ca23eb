//! Fuzz target: compressed payloads that may refer to a message before (RFC 7692 §7.2.2, §7.2.3.2).
//! Bytes (two of them choose window and first message) → nothing, or a panic that names the broken promise.
//! Uses `fanwire_deflate::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/deflate/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_deflate::fuzzing::takeover(data));
