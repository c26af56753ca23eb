//! The broker of a node that stands alone: order by a lock per channel stripe, idempotency results in memory.
//! In: `publish` on any thread → out: publications at the door, in one order per channel.
//! Uses: striped locks. Never: clocks (time is a parameter), history; positions are empty until there is history.
//! Change here: what the memory broker remembers. Its promises stand in `broker.rs`.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_protocol::Publication;
use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::Mutex;

use super::{Broker, BrokerError, Position, PublishOptions};
use crate::deliver::Deliver;

/// Publishes by calling the door while it holds the lock of the channel's stripe: that is the order of the channel.
pub struct MemoryBroker {
    door: Arc<dyn Deliver>,
    hasher: DefaultHashBuilder,
    stripes: Box<[Mutex<Results>]>,
}

impl MemoryBroker {
    pub fn new(door: Arc<dyn Deliver>) -> Self {
        let stripes = (0..STRIPES).map(|_| Mutex::default()).collect();
        Self { door, hasher: DefaultHashBuilder::default(), stripes }
    }
}

impl Broker for MemoryBroker {
    fn publish(
        &self,
        channel: &str,
        publication: Publication,
        options: &PublishOptions,
        now: Instant,
    ) -> Result<Position, BrokerError> {
        let stripe = self.hasher.hash_one(channel) as usize % STRIPES;
        let mut results = self.stripes[stripe].lock();
        results.forget_expired(now);
        let key = (!options.idempotency_key.is_empty())
            .then(|| Key::new(channel, &options.idempotency_key));
        if let Some(first) = key.as_ref().and_then(|key| results.positions.get(key)) {
            return Ok(first.clone());
        }
        let position = Position::default();
        self.door.deliver(channel, publication, now);
        if let Some(key) = key {
            results.remember(key, position.clone(), now);
        }
        Ok(position)
    }

    fn subscribe(&self, _channel: &str) {}

    fn unsubscribe(&self, _channel: &str) {}
}

/// Idempotency results of one stripe, oldest first.
#[derive(Default)]
struct Results {
    positions: HashMap<Arc<Key>, Position>,
    queue: VecDeque<(Instant, Arc<Key>)>,
    bytes: usize,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    channel: Box<str>,
    key: Box<str>,
}

impl Key {
    fn new(channel: &str, key: &str) -> Self {
        Self { channel: channel.into(), key: key.into() }
    }

    /// Roughly what remembering it costs.
    fn bytes(&self) -> usize {
        self.channel.len() + self.key.len() + KEY_BYTES_OVERHEAD
    }
}

impl Results {
    /// All live equally long, so the oldest expires first.
    fn forget_expired(&mut self, now: Instant) {
        while (self.queue.front())
            .is_some_and(|(since, _)| now.saturating_duration_since(*since) >= IDEMPOTENCY_TTL)
        {
            self.forget_oldest();
        }
    }

    fn remember(&mut self, key: Key, position: Position, now: Instant) {
        let key = Arc::new(key);
        self.bytes += key.bytes();
        self.queue.push_back((now, Arc::clone(&key)));
        self.positions.insert(key, position);
        while self.bytes > IDEMPOTENCY_BYTES_MAX / STRIPES {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, key)) = self.queue.pop_front() {
            self.bytes -= key.bytes();
            self.positions.remove(&key);
        }
    }
}

/// How long a repeated idempotency key returns the first result (server API §6.1).
const IDEMPOTENCY_TTL: Duration = Duration::from_secs(300);
/// Memory for idempotency results of the node; beyond it the oldest are forgotten before their time.
const IDEMPOTENCY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A map entry, a queue entry and the heap block of a key.
const KEY_BYTES_OVERHEAD: usize = 160;
/// Locks; publications of channels of one stripe wait for each other.
const STRIPES: usize = 64;

#[cfg(test)]
mod tests;
