//! Events out: reports of what clients do go to the application's backend, in batches, at least once (docs/events.md).
//! In: the node's reports → out: signed POST requests of JSON, or entries of a Redis stream; nothing is lost without a word in the stream.
//! Uses the HTTP client of `tls`, the Redis client of `redis`. Never: decisions; a shard never waits for a backend.
//! Changed here: which reports become which events. `queue` keeps them, `occupancy` follows channels of all nodes, `sender` sends.
#![forbid(unsafe_code)]

mod event;
mod occupancy;
mod options;
mod own_channels;
mod queue;
mod sender;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use fanwire_node::hooks::{ClientReport, Hooks};
use fanwire_node::{Node, OccupancyReport};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

pub use event::{EventType, OutgoingEvent};
use occupancy::{Occupancy, Surroundings};
pub use options::{EventsHttpOptions, EventsOptions, EventsRedisStreamOptions};
use own_channels::OwnChannels;
use queue::EventQueue;
pub use sender::EventsError;
use sender::Sender;

/// The events of a node on their way to a backend.
#[derive(Clone, Debug)]
pub struct Events(Arc<Pipeline>);

#[derive(Debug)]
struct Pipeline {
    sender: Sender,
    state: Mutex<PipelineState>,
    own_channels: Mutex<OwnChannels>,
    /// Messages of nodes about occupied channels, until the next look at them.
    reports: Mutex<Vec<(String, OccupancyReport)>>,
    /// Whether the backend wants to know which channels are occupied.
    tells_channels: bool,
    vacated_delay: Duration,
    /// A batch is full.
    is_full: Notify,
    batch_size: usize,
    batch_delay: Duration,
    counts: Counts,
}

#[derive(Debug)]
struct PipelineState {
    /// Those that the backend wants.
    types: BTreeSet<EventType>,
    queue: EventQueue,
    /// Events about occupied channels that were added, and those of them that the backend has accepted.
    told: [u64; 2],
    /// Another node may tell the backend about channels: events of this one have to wait.
    is_cut_off: bool,
}

/// Looks at the other nodes, one after another: what a look needs from the one before.
#[derive(Debug)]
pub struct Watch {
    pipeline: Arc<Pipeline>,
    occupancy: Option<Occupancy>,
    peers: BTreeSet<String>,
    /// Nodes that were reported as gone.
    gone: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    failed_requests: AtomicU64,
}

/// Numbers for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventStats {
    /// Events that the backend has accepted.
    pub sent: u64,
    /// Events that did not fit into the queue.
    pub lost: u64,
    pub waiting: usize,
    /// Requests without a response 2xx; their events are sent again.
    pub failed_requests: u64,
}

impl Events {
    /// The events of a server; `None` without a place for them.
    ///
    /// # Errors
    /// See [`EventsError`].
    pub fn new(options: &EventsOptions) -> Result<Option<Self>, EventsError> {
        let Some(sender) = Sender::new(options)? else { return Ok(None) };
        let named = options.types.iter().filter_map(|name| EventType::named(name));
        let types: BTreeSet<_> = named.collect();
        let types = if types.is_empty() { EventType::ALL.into() } else { types };
        let tells_channels =
            [EventType::Occupied, EventType::Vacated].iter().any(|one| types.contains(one));
        let state = PipelineState {
            types,
            queue: EventQueue::new(options.queue_max),
            told: [0, 0],
            is_cut_off: false,
        };
        Ok(Some(Self(Arc::new(Pipeline {
            sender,
            state: Mutex::new(state),
            own_channels: Mutex::default(),
            reports: Mutex::default(),
            tells_channels,
            vacated_delay: options.vacated_delay,
            is_full: Notify::new(),
            batch_size: options.batch_size,
            batch_delay: options.batch_delay,
            counts: Counts::default(),
        }))))
    }

    /// The hooks that receive the node's reports.
    pub fn hooks(&self) -> Hooks {
        let pipeline = Arc::clone(&self.0);
        let receiver = Arc::clone(&self.0);
        let report = move |report: ClientReport| pipeline.report(report);
        let occupancy = move |from, report| receiver.receive(from, report);
        Hooks {
            report: Some(Box::new(report)),
            occupancy: self.0.tells_channels.then_some(Box::new(occupancy)),
            ..Hooks::default()
        }
    }

    pub fn stats(&self) -> EventStats {
        let state = self.0.state.lock();
        EventStats {
            sent: self.0.counts.sent.load(Relaxed),
            lost: state.queue.lost(),
            waiting: state.queue.len(),
            failed_requests: self.0.counts.failed_requests.load(Relaxed),
        }
    }

    /// Sends events until the node is gone. Tells when another node leaves, with or without a word.
    pub async fn run(self, node: Weak<Node>) {
        let uid = node.upgrade().map(|node| node.uid().to_owned()).unwrap_or_default();
        let watch = self.watch(&uid, unix_ms());
        tokio::select! {
            () = watch.run(node) => {}
            () = self.0.send(&uid) => {}
        }
    }

    /// Tells that a node starts, and returns its look at the other nodes. [`run`](Self::run) does so by itself.
    pub fn watch(&self, uid: &str, unix_ms: u64) -> Watch {
        self.0.change(|state| {
            state.push(OutgoingEvent::of_node(EventType::NodeStarted, uid.to_owned()));
        });
        Watch::new(Arc::clone(&self.0), uid, unix_ms)
    }

    /// The events of the next request; none while those about channels have to wait. [`run`](Self::run) sends them by itself.
    pub fn next_batch(&self) -> Vec<OutgoingEvent> {
        let mut state = self.0.state.lock();
        if state.must_wait() {
            return Vec::new();
        }
        state.queue.batch(self.0.batch_size, unix_ms()).into_iter().cloned().collect()
    }

    /// The first events that wait have arrived at the backend.
    pub fn accepted(&self, count: usize) {
        self.0.accepted(count);
    }
}

impl Pipeline {
    fn report(&self, report: ClientReport) {
        self.change(|state| {
            let event = match report {
                ClientReport::Connected { client } => {
                    OutgoingEvent::of_client(EventType::Connected, client)
                }
                ClientReport::Subscribed { client, channel, .. } => {
                    if self.tells_channels {
                        self.own_channels.lock().enter(&channel);
                    }
                    let event = OutgoingEvent::of_client(EventType::Subscribed, client);
                    OutgoingEvent { channel: Some(channel), ..event }
                }
                ClientReport::Unsubscribed { client, channel } => {
                    if self.tells_channels {
                        self.own_channels.lock().leave(&channel);
                    }
                    let event = OutgoingEvent::of_client(EventType::Unsubscribed, client);
                    OutgoingEvent { channel: Some(channel), ..event }
                }
                ClientReport::Disconnected { client, disconnect } => {
                    let event = OutgoingEvent::of_client(EventType::Disconnected, client);
                    let code = Some(disconnect.code);
                    let reason = disconnect.reason.into_owned();
                    OutgoingEvent { code, reason, ..event }
                }
                ClientReport::ViewChanged { .. } => return,
            };
            state.push(event);
        });
    }

    /// Keeps a message of a node. One that does not fit is noticed by its number, and asked for.
    fn receive(&self, from: String, report: OccupancyReport) {
        let mut reports = self.reports.lock();
        if reports.len() < REPORTS_MAX {
            reports.push((from, report));
        }
    }

    /// Sends what waits, forever.
    async fn send(&self, uid: &str) {
        let mut tick = interval(self.batch_delay);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = self.is_full.notified() => {}
            }
            self.send_all(uid).await;
        }
    }

    /// Changes the state under its lock, so that events of a channel have one order.
    fn change<T>(&self, change: impl FnOnce(&mut PipelineState) -> T) -> T {
        let (is_full, result) = {
            let mut state = self.state.lock();
            let before = state.queue.len();
            let result = change(&mut state);
            (before < self.batch_size && state.queue.len() >= self.batch_size, result)
        };
        if is_full {
            self.is_full.notify_one();
        }
        result
    }

    /// Sends what waits now, batch by batch; a failed one is tried again until the backend takes it.
    async fn send_all(&self, node: &str) {
        loop {
            let (count, body) = {
                let mut state = self.state.lock();
                let batch = state.queue.batch(self.batch_size, unix_ms());
                (batch.len(), event::encode(node, batch))
            };
            if count == 0 {
                return;
            }
            while let Err(error) = self.send_once(body.clone()).await {
                self.counts.failed_requests.fetch_add(1, Relaxed);
                self.sender.pause(&error).await;
            }
            self.sender.succeeded();
            self.accepted(count);
        }
    }

    fn accepted(&self, count: usize) {
        self.counts.sent.fetch_add(count as u64, Relaxed);
        let mut state = self.state.lock();
        let told = state.queue.remove(count);
        state.told[1] += told;
    }

    async fn send_once(&self, body: Bytes) -> Result<(), String> {
        while self.state.lock().must_wait() {
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
        self.sender.send(body).await
    }
}

impl PipelineState {
    /// Whether events wait about channels of which another node may tell newer ones.
    fn must_wait(&self) -> bool {
        self.is_cut_off && self.told[0] > self.told[1]
    }

    /// Adds an event if the backend wants its type. Returns false if it was lost.
    fn push(&mut self, event: OutgoingEvent) -> bool {
        if !self.types.contains(&event.r#type) {
            return true;
        }
        let is_of_occupancy = event.r#type.is_of_occupancy();
        let is_added = self.queue.push(event, unix_ms());
        self.told[0] += u64::from(is_added && is_of_occupancy);
        is_added
    }
}

impl Watch {
    fn new(pipeline: Arc<Pipeline>, uid: &str, unix_ms: u64) -> Self {
        let occupancy = || Occupancy::new(uid.to_owned(), unix_ms, pipeline.vacated_delay);
        Self {
            occupancy: pipeline.tells_channels.then(occupancy),
            pipeline,
            peers: BTreeSet::new(),
            gone: BTreeSet::new(),
        }
    }

    /// Looks at the other nodes until this one is gone.
    async fn run(mut self, node: Weak<Node>) {
        let mut tick = interval(WATCH_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let Some(node) = node.upgrade() else { return };
            self.look(&node, Instant::now());
        }
    }

    /// Looks at the other nodes once, and tells them about the channels of this one.
    pub fn look(&mut self, node: &Node, now: Instant) {
        let present = node.nodes(now).into_iter().map(|peer| peer.uid).collect();
        for (to, report) in self.compare(present, node.cluster().has_bus(), now) {
            node.cluster().send_occupancy(to.as_deref(), report);
        }
        node.set_event_seq(self.pipeline.state.lock().queue.seq());
    }

    /// Adds events about nodes and occupied channels. Returns messages to nodes.
    fn compare(
        &mut self,
        present: BTreeSet<String>,
        is_in_cluster: bool,
        now: Instant,
    ) -> Vec<(Option<String>, OccupancyReport)> {
        let returned: Vec<_> = self.gone.intersection(&present).cloned().collect();
        let gone: Vec<_> = self.peers.difference(&present).cloned().collect();
        let (room, told) = self.pipeline.change(|state| {
            for uid in &returned {
                state.push(OutgoingEvent::of_node(EventType::NodeReturned, uid.clone()));
            }
            for uid in &gone {
                state.push(OutgoingEvent::of_node(EventType::NodeGone, uid.clone()));
            }
            (state.queue.room(), state.told.iter().sum())
        });
        self.gone.retain(|uid| !present.contains(uid));
        self.gone.extend(gone);
        while self.gone.len() > GONE_MAX {
            self.gone.pop_first();
        }
        self.peers = present;
        let reports = std::mem::take(&mut *self.pipeline.reports.lock());
        let Some(occupancy) = &mut self.occupancy else { return Vec::new() };
        for (from, report) in reports {
            occupancy.receive(&from, report, now);
        }
        let present = &self.peers;
        let own = &self.pipeline.own_channels;
        let around = Surroundings { now, present, is_in_cluster, room, told, own };
        let output = occupancy.tick(&around);
        let is_lost = self.pipeline.change(|state| {
            state.is_cut_off = occupancy.is_cut_off(&around);
            output.events.into_iter().filter(|event| !state.push(event.clone())).count() > 0
        });
        if is_lost {
            occupancy.recount();
        }
        output.messages
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Interval of looks at the other nodes.
pub const WATCH_INTERVAL: Duration = Duration::from_millis(200);
/// Messages of nodes about occupied channels between two looks.
const REPORTS_MAX: usize = 1000;
/// Nodes that are remembered as gone.
const GONE_MAX: usize = 1000;

#[cfg(test)]
mod tests;
