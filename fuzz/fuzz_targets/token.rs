//! Fuzz target: tokens (RFC 7515 in the compact form), header and claims.
//! Bytes of a header and of claims → nothing, or a panic that names the broken promise.
//! Uses `fanwire_auth::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/auth/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_auth::fuzzing::token(data));
