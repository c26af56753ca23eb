//! Fuzz target: commands of the client protocol, JSON and Protobuf.
//! Bytes of one WebSocket message → nothing, or a panic that names the broken promise.
//! Uses `fanwire_protocol::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/protocol/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_protocol::fuzzing::commands(data));
