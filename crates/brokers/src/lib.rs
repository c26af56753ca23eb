//! Brokers and presence stores beyond one machine, behind the ports of `fanwire-node`.
//! In: options and a runtime → out: a `Broker` and a `Presence` that several nodes share.
//! May use `node` and sockets of its own; never sessions, frames, HTTP.
//! Change here: the list of rooms. What every broker promises stands in `fanwire_broker`.
#![forbid(unsafe_code)]

pub mod redis;
