//! Fuzz target: messages of other nodes.
//! Bytes of a message → nothing, or a panic that names the broken promise.
//! Uses `fanwire_node::fuzzing` only; the same function runs as a property test on stable.
//! Changed here: nothing. What is promised is written in `crates/node/src/fuzzing.rs`.
#![forbid(unsafe_code)]
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fanwire_node::fuzzing::node_message(data));
