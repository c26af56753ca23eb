//! Fuzz target: documents of keys (JWK Set, RFC 7517 §5), which come from an address that others answer for.
//! Bytes of a document → nothing, or a panic that names the broken promise.
//! Uses `fanwire_auth::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/auth/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_auth::fuzzing::key_set(data));
