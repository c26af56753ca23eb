//! Fuzz target: tag filters (client protocol §13), which clients send and which are asked for every publication.
//! Bytes of a Protobuf filter → nothing, or a panic that names the broken promise.
//! Uses `fanwire_node::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/node/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_node::fuzzing::tag_filter(data));
