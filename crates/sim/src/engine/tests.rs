//! The model engine keeps the promises of every engine, and loses what a failover may lose.
//! In: the conformance suites, a failover between two publishes → out: positions.
//! Uses: the model with answers at once. Never: the network.
//! Changed here: tests of the model. The simulated world has its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_broker::conformance;
use fanwire_broker::{PublishOptions, Query, Retention};
use fanwire_protocol::Publication;

use super::Engine;
use super::ports::EnginePort;
use super::streams::Publish;
use crate::chance::SeededRandom;

fn port() -> Arc<EnginePort> {
    EnginePort::answering_at_once(Engine::new(SeededRandom::new(1)))
}

#[test]
fn the_model_keeps_the_promises_of_a_broker() {
    conformance::broker::check_without_growing_messages(&|deliver| {
        let port = port();
        port.deliver_to(deliver);
        port
    });
}

#[test]
fn the_model_keeps_the_promises_of_a_store_of_presence() {
    conformance::presence::check_slow(&|| port());
}

#[test]
fn a_failover_loses_the_end_of_a_stream_and_begins_an_epoch_that_continues_the_rest() {
    let mut engine = Engine::new(SeededRandom::new(2));
    let start = Instant::now();
    let retention =
        Retention { size: 9, ttl: Duration::from_secs(60), meta_ttl: Duration::from_secs(600) };
    let publish = |engine: &mut Engine, number: u64, at: Instant| {
        let data = number.to_string().into();
        let publication = Publication { data, ..Publication::default() };
        let options = PublishOptions::default();
        let publish = Publish { channel: "a".to_owned(), publication, options, retention };
        engine.publish(publish, at).position
    };
    let first = publish(&mut engine, 1, start);
    let lost = publish(&mut engine, 2, start + Duration::from_secs(3));
    engine.fail_over(Duration::from_secs(1), start + Duration::from_secs(3));
    let next = publish(&mut engine, 3, start + Duration::from_secs(4));
    assert_eq!((lost.offset, next.offset), (2, 2));
    assert_ne!(next.epoch, first.epoch);
    let read = engine.read("a", Query::default(), retention, start + Duration::from_secs(4));
    assert_eq!(read.inherited, first);
    assert!(engine.truth.lock().continues(next.epoch.as_str(), first.epoch.as_str(), 1));
    assert!(!engine.truth.lock().continues(next.epoch.as_str(), first.epoch.as_str(), 2));
}
