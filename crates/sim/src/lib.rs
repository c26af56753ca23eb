//! A whole Fanwire cluster on one thread: nodes, their engine, clients and backends, with a time and a chance of its own.
//! In: a seed → out: a story of events, and the promises that were broken.
//! Uses the node and its ports as the server does. Never: sockets, threads, tokio, a real clock.
//! Changed here: the list of modules. Start at `plan.rs` for what a seed means, `world.rs` for what happens, `world/checkers.rs` for what
//! is promised.
#![forbid(unsafe_code)]

pub mod backend;
pub mod chance;
pub mod classes;
pub mod client;
pub mod disk;
pub mod engine;
pub mod faults;
pub mod host;
pub mod memory;
pub mod network;
pub mod page;
pub mod plan;
pub mod scheduler;
pub mod shrink;
pub mod story;
pub mod traffic;
pub mod truth;
pub mod world;
