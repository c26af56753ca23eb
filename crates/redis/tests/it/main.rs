//! Integration tests of the Redis engine, against a `redis-server` that each test starts for itself.
//! In: a real Redis on a free port in a folder of its own → out: a panic that names the broken promise.
//! May use the public interface only. Never: a Redis of the machine, sleeps.
//! A new theme is a module here; the promises of all brokers are in `fanwire_broker::conformance`.
#![forbid(unsafe_code)]

mod cluster;
mod conformance;
mod control;
mod faults;
mod foreign;
mod growing;
mod map_soak;
mod maps;
mod network;
mod node;
mod presence;
mod proxy;
mod reads;
mod revocations;
mod sentinel;
mod server;
mod slots;
mod soak;
mod tls;
mod wait;
