//! A node for tests: an engine, and a receiver that records what it delivers.
//! In: what a Redis publishes → out: events, waited for with a limit.
//! Uses a channel of std. Never: sleeps.
//! Changed here: how tests read events and wait for answers.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{
    Answer, Broker as _, BrokerError, Change, Deliver, DeliverOptions, Epoch, Position,
    PublishOptions, Query, Retention, StreamSlice,
};
use fanwire_protocol::{ClientInfo, Publication};
use fanwire_redis::{Health, Redis, RedisOptions};
use fanwire_testing::wait_for;
use tokio::runtime::Runtime;

/// A delivery: channel, payload, position.
pub(crate) type Event = (String, String, Position);

struct RecordingReceiver {
    events: Mutex<Sender<Event>>,
    /// Changes of maps, which are not among the events.
    changes: Mutex<Sender<(Publication, Epoch)>>,
    gaps: Mutex<Sender<String>>,
    delivery_lock: Arc<Mutex<()>>,
    is_congested: Arc<AtomicBool>,
}

impl RecordingReceiver {
    fn send(&self, event: Event) {
        if self.delivery_lock.try_lock().is_err() {
            // Other tasks of the runtime go on on another thread.
            tokio::task::block_in_place(|| drop(self.delivery_lock.lock()));
        }
        let _ = self.events.lock().expect("no panic inside").send(event);
    }
}

impl Deliver for RecordingReceiver {
    fn deliver(&self, channel: &str, publication: Publication, options: DeliverOptions) {
        if !publication.key.is_empty() {
            let _ =
                self.changes.lock().expect("no panic inside").send((publication, options.epoch));
            return;
        }
        let data = String::from_utf8_lossy(&publication.data).into_owned();
        let position = Position { offset: publication.offset, epoch: options.epoch };
        self.send((channel.to_owned(), data, position));
    }

    fn deliver_join_leave(&self, channel: &str, change: Change, client: ClientInfo) {
        let data = format!("{change:?} {}", client.client);
        self.send((channel.to_owned(), data, Position::default()));
    }

    fn report_possible_gap(&self, channel: &str) {
        let _ = self.gaps.lock().expect("no panic inside").send(channel.to_owned());
    }

    fn is_congested(&self) -> bool {
        self.is_congested.load(Relaxed)
    }
}

/// An engine, its receiver and the runtime that both run on.
pub(crate) struct Node {
    pub(crate) redis: Redis,
    events: Mutex<Receiver<Event>>,
    changes: Mutex<Receiver<(Publication, Epoch)>>,
    gaps: Mutex<Receiver<String>>,
    /// While a test holds it, deliveries block.
    pub(crate) delivery_lock: Arc<Mutex<()>>,
    is_congested: Arc<AtomicBool>,
    _runtime: Runtime,
}

impl Node {
    pub(crate) fn start(options: &RedisOptions) -> Self {
        let runtime = runtime();
        let (sender, events) = channel();
        let (change_sender, changes) = channel();
        let (gap_sender, gaps) = channel();
        let (delivery_lock, is_congested) = <(Arc<_>, Arc<AtomicBool>)>::default();
        let redis = Redis::start(options, runtime.handle());
        redis.deliver_to(Arc::new(RecordingReceiver {
            events: Mutex::new(sender),
            changes: Mutex::new(change_sender),
            gaps: Mutex::new(gap_sender),
            delivery_lock: Arc::clone(&delivery_lock),
            is_congested: Arc::clone(&is_congested),
        }));
        let events = Mutex::new(events);
        let changes = Mutex::new(changes);
        let gaps = Mutex::new(gaps);
        Self { redis, events, changes, gaps, delivery_lock, is_congested, _runtime: runtime }
    }

    /// Sets whether the receiver reports that shards are behind.
    pub(crate) fn set_congested(&self, is_congested: bool) {
        self.is_congested.store(is_congested, Relaxed);
    }

    /// The next event.
    pub(crate) fn event(&self) -> Event {
        let events = self.events.lock().expect("no panic inside");
        events.recv_timeout(WAIT_MAX).expect("an event in time")
    }

    /// The next change of a map.
    pub(crate) fn publication(&self) -> Publication {
        let changes = self.changes.lock().expect("no panic inside");
        changes.recv_timeout(WAIT_MAX).expect("a change in time").0
    }

    /// The changes of maps until now, with their epochs.
    pub(crate) fn publications_so_far(&self) -> Vec<(Publication, Epoch)> {
        self.changes.lock().expect("no panic inside").try_iter().collect()
    }

    /// The events until now.
    pub(crate) fn events_so_far(&self) -> Vec<Event> {
        self.events.lock().expect("no panic inside").try_iter().collect()
    }

    /// The channels with a reported gap until now.
    pub(crate) fn gaps_so_far(&self) -> Vec<String> {
        self.gaps.lock().expect("no panic inside").try_iter().collect()
    }

    /// The channel of the next reported gap.
    pub(crate) fn next_gap(&self) -> String {
        let gaps = self.gaps.lock().expect("no panic inside");
        gaps.recv_timeout(WAIT_MAX).expect("a gap in time")
    }

    /// Waits until a gap of `channel` is reported; ignores other channels.
    pub(crate) fn wait_for_gap(&self, channel: &str) {
        while self.next_gap() != channel {}
    }

    /// Subscribes and waits for the confirmation.
    pub(crate) fn subscribe(&self, channel: &str) {
        self.redis.subscribe(channel);
        let followed = self.redis.follow(channel, None, Retention::default(), Instant::now());
        assert_eq!(followed.wait(), Ok(StreamSlice::default()));
    }

    /// Does what a node does each second.
    pub(crate) fn sweep(&self, now: Instant) {
        fanwire_broker::Broker::sweep(&self.redis, now);
    }

    pub(crate) fn publish(&self, channel: &str, data: &str) -> Result<Position, BrokerError> {
        self.begin_publish(channel, data.to_owned()).wait()
    }

    /// Publishes without waiting for the answer.
    pub(crate) fn begin_publish(&self, channel: &str, data: impl Into<Bytes>) -> Answer<Position> {
        self.publish_in(channel, data, retention())
    }

    /// Publishes with other limits of history.
    pub(crate) fn publish_in(
        &self,
        channel: &str,
        data: impl Into<Bytes>,
        retention: Retention,
    ) -> Answer<Position> {
        let publication = Publication { data: data.into(), ..Publication::default() };
        let options = PublishOptions::default();
        self.redis.publish(channel, publication, &options, retention, Instant::now())
    }

    pub(crate) fn read(&self, channel: &str) -> Result<StreamSlice, BrokerError> {
        self.redis.history(channel, Query::default(), retention(), Instant::now()).wait()
    }

    /// Publishes until it succeeds, as a backend does. A refused connection costs a try, a lost one a wait.
    pub(crate) fn publish_until_done(&self, channel: &str, data: &str) -> Position {
        let health = self.redis.health();
        let attempt = || self.publish(channel, data).map_err(|_| health.current_error());
        wait_for(attempt, 3 * WAIT_MAX) // the first election of a new master may fail
    }

    /// Waits until every connection is up.
    pub(crate) fn wait_until_healthy(&self) {
        self.wait_until(Health::is_healthy);
    }

    pub(crate) fn wait_until(&self, is_so: impl Fn(&Health) -> bool) {
        let health = self.redis.health();
        wait_for(|| is_so(health).then_some(()).ok_or(health), WAIT_MAX);
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
}

pub(crate) fn retention() -> Retention {
    Retention { size: 1000, ttl: Duration::from_secs(600), meta_ttl: Duration::from_secs(6000) }
}

/// More than any step needs; tests that pass never wait this long.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(30);
