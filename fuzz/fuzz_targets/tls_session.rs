//! Fuzz target: what a TLS session of a shard receives, before and after its handshake (RFC 8446 §5, RFC 5246 §6).
//! Bytes (five of them choose version, state and sizes of reads) → nothing, or a panic that names the broken promise.
//! Uses `fanwire_shard::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/shard/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_shard::fuzzing::tls_session(data));
