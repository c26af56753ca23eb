//! Integration tests of consumers, against queues that each test starts for itself.
//! In: real PostgreSQL, Redis and NATS servers on free ports in folders of their own → out: a panic that names the broken promise.
//! May use the public interface only. Never: a server of the machine, sleeps.
//! A new queue is a module here; `server` says which programs are needed.
#![forbid(unsafe_code)]

mod harness;
#[cfg(feature = "jetstream")]
mod jetstream;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "postgres")]
mod pgbouncer;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis-stream")]
mod redis_stream;
mod server;
