//! The memory engine of the product with a witness in front of it, which writes down what was published.
//! In: calls of a node → out: the answers of the memory engine, entries of the truth.
//! Uses `MemoryBroker`. Never: changes a call or an answer.
//! Changed here: what is written down.

use std::sync::Arc;
use std::time::Instant;

use fanwire_broker::{
    Answer, Broker, Change, MemoryBroker, Position, PublishOptions, Query, Retention, StreamSlice,
    SuppressedCounts, Suppression,
};
use fanwire_protocol::{ClientInfo, Publication};
use parking_lot::Mutex;

use crate::engine::number_of;
use crate::truth::{Truth, TruthEntry};

/// A broker that writes down what the one behind it accepts.
pub struct Witness {
    inner: Arc<MemoryBroker>,
    truth: Arc<Mutex<Truth>>,
}

impl Witness {
    pub fn new(inner: Arc<MemoryBroker>, truth: Arc<Mutex<Truth>>) -> Self {
        Self { inner, truth }
    }
}

impl Broker for Witness {
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        retention: Retention,
        now: Instant,
    ) -> Answer<Position> {
        let number = number_of(&publication);
        let kind = publication.tags.get("kind").cloned().unwrap_or_default();
        let suppressed = self.inner.suppressed();
        let published = self.inner.publish(channel, publication, options, retention, now);
        let position = published.ready().expect("the memory engine answers at once");
        let is_new = self.inner.suppressed() == suppressed;
        if let Some(number) = number.filter(|_| is_new)
            && let Ok(position) = position
        {
            let mut truth = self.truth.lock();
            match position.offset {
                0 => truth.pass_on(channel, number),
                offset => {
                    let entry = TruthEntry { number, kind, stored_at: now };
                    truth.store(channel, position.epoch.as_str(), offset, entry);
                }
            }
        }
        Answer::now(position)
    }

    fn history(
        &self,
        channel: &str,
        query: Query,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        self.inner.history(channel, query, retention, now)
    }

    fn follow(
        &self,
        channel: &str,
        query: Option<Query>,
        retention: Retention,
        now: Instant,
    ) -> Answer<StreamSlice> {
        self.inner.follow(channel, query, retention, now)
    }

    fn publish_join_leave(&self, channel: &str, change: Change, info: ClientInfo) -> Answer<()> {
        self.inner.publish_join_leave(channel, change, info)
    }

    fn remove_history(&self, channel: &str, now: Instant) -> Answer<()> {
        self.inner.remove_history(channel, now)
    }

    fn subscribe(&self, channel: &str) {
        self.inner.subscribe(channel);
    }

    fn unsubscribe(&self, channel: &str) {
        self.inner.unsubscribe(channel);
    }

    fn sweep(&self, now: Instant) {
        self.inner.sweep(now);
    }

    fn history_bytes(&self) -> usize {
        self.inner.history_bytes()
    }

    fn suppressed(&self) -> SuppressedCounts {
        self.inner.suppressed()
    }

    fn suppressed_of(&self, receipt: u64) -> Vec<Suppression> {
        self.inner.suppressed_of(receipt)
    }
}
