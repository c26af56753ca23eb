//! The conformance suites of brokers, presence stores and statuses, with the Redis engine.
//! In: a fresh prefix of one Redis per promise → out: the panic of the conformance suite.
//! Uses the public interface. Never: two promises with one prefix.
//! Promises of this engine alone are tested in `faults.rs`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use fanwire_redis::{Redis, RedisOptions};

use crate::node::runtime;
use crate::server::RedisServer;
use crate::slots::Slots;

/// Options with an unused prefix.
pub(crate) fn fresh(options: RedisOptions) -> RedisOptions {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("test{}", NUMBER.fetch_add(1, Relaxed));
    RedisOptions { prefix, ..options }
}

#[test]
fn a_cluster_passes_all_suites() {
    let cluster = Slots::start(0);
    let runtime = runtime();
    fanwire_broker::conformance::broker::check(&|receiver| {
        let redis = Redis::start(&fresh(cluster.options()), runtime.handle());
        redis.deliver_to(receiver);
        Arc::new(redis)
    });
    fanwire_broker::conformance::map::check(&|receiver| {
        let redis = Redis::start(&fresh(cluster.options()), runtime.handle());
        redis.deliver_to(receiver);
        Arc::new(redis)
    });
    fanwire_broker::conformance::presence::check_slow(&|| {
        Arc::new(Redis::start(&fresh(cluster.options()), runtime.handle()))
    });
    fanwire_broker::conformance::user_statuses::check(&|| {
        Arc::new(Redis::start(&fresh(cluster.options()), runtime.handle()))
    });
}

#[test]
fn the_statuses_pass_the_suite() {
    let server = RedisServer::start(&[]);
    let runtime = runtime();
    fanwire_broker::conformance::user_statuses::check(&|| {
        Arc::new(Redis::start(&fresh(server.options()), runtime.handle()))
    });
}

#[test]
fn the_broker_passes_the_suite() {
    let server = RedisServer::start(&[]);
    let runtime = runtime();
    fanwire_broker::conformance::broker::check(&|receiver| {
        let redis = Redis::start(&fresh(server.options()), runtime.handle());
        redis.deliver_to(receiver);
        Arc::new(redis)
    });
}

#[test]
fn the_maps_pass_the_suite() {
    let server = RedisServer::start(&[]);
    let runtime = runtime();
    fanwire_broker::conformance::map::check(&|receiver| {
        let redis = Redis::start(&fresh(server.options()), runtime.handle());
        redis.deliver_to(receiver);
        Arc::new(redis)
    });
}

#[test]
fn the_presence_passes_the_suite() {
    let server = RedisServer::start(&[]);
    let runtime = runtime();
    fanwire_broker::conformance::presence::check_slow(&|| {
        Arc::new(Redis::start(&fresh(server.options()), runtime.handle()))
    });
}
