//! Integration tests of fanwire-deflate, against a decoder written for the test.
//! Random messages and payloads → equal results from two independent decoders.
//! Uses the public items only.
//! Changed here: the list of test modules.
#![forbid(unsafe_code)]

mod against_oracle;
mod any_bytes;
mod channel;
mod client;
mod clients;
mod fan_out;
mod limits;
mod messages;
mod puff;
mod streams;
