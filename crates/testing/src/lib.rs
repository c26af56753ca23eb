//! The parts that tests of several crates share: waits for a condition, folders, ports, and numbers of formats.
//! In: a condition and a time limit; nothing; bytes → out: the value that was waited for; a folder or a port that no other test uses; a number.
//! May use threads, sockets, files and a clock; never a crate of ours. Only tests, benches and conformance suites depend on it.
//! Changed here: how long a wait pauses, which ports there are. What a crate's tests wait for is decided in its tests.
#![forbid(unsafe_code)]

mod fingerprint;
mod folder;
mod ports;
mod wait;

pub use fingerprint::fingerprint;
pub use folder::Folder;
pub use ports::free_port;
pub use wait::{Attempt, pause, wait_for, wait_for_async, yield_to_others};
