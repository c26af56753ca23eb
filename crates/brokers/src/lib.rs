//! Brokers and presence stores that several nodes share, behind the ports of the crate `broker`.
//! In: options and a runtime → out: a `Broker` and a `Presence`.
//! May use sockets of its own; never sessions, frames, HTTP.
//! Change here: the list of modules. The contract of every broker is in `fanwire_broker`.
#![forbid(unsafe_code)]

pub mod redis;
