//! Events out: reports of what clients do go to the application's backend, in batches, at least once (docs/events.md).
//! In: the node's reports → out: signed POST requests of JSON; nothing is lost without a word in the stream.
//! Uses the HTTP client of `tls`. Never: decisions; a shard never waits for a backend.
//! Changed here: which reports become which events. `queue` keeps them, `occupancy` follows channels, `sender` sends.
#![forbid(unsafe_code)]

mod event;
mod occupancy;
mod queue;
mod sender;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fanwire_config::EventsOptions;
use fanwire_node::Node;
use fanwire_node::hooks::{ClientReport, Hooks};
use fanwire_tls::TlsError;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

pub use event::{EventType, OutgoingEvent};
use occupancy::Occupancy;
use queue::EventQueue;
use sender::Sender;

/// The events of a node on their way to a backend.
#[derive(Clone, Debug)]
pub struct Events(Arc<Pipeline>);

#[derive(Debug)]
struct Pipeline {
    sender: Sender,
    state: Mutex<PipelineState>,
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
    occupancy: Occupancy,
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
    /// The events of a server; `None` without an endpoint.
    ///
    /// # Errors
    /// An option of TLS.
    pub fn new(options: &EventsOptions) -> Result<Option<Self>, TlsError> {
        if options.http.endpoint.is_empty() {
            return Ok(None);
        }
        let named = options.types.iter().filter_map(|name| EventType::named(name));
        let types: BTreeSet<_> = named.collect();
        let types = if types.is_empty() { EventType::ALL.into() } else { types };
        let state = PipelineState {
            types,
            queue: EventQueue::new(options.queue_max),
            occupancy: Occupancy::new(options.vacated_delay),
        };
        Ok(Some(Self(Arc::new(Pipeline {
            sender: Sender::new(&options.http)?,
            state: Mutex::new(state),
            is_full: Notify::new(),
            batch_size: options.batch_size,
            batch_delay: options.batch_delay,
            counts: Counts::default(),
        }))))
    }

    /// The hook that receives the node's reports.
    pub fn hooks(&self) -> Hooks {
        let pipeline = Arc::clone(&self.0);
        let report = move |report: ClientReport| pipeline.report(report);
        Hooks { report: Some(Box::new(report)), ..Hooks::default() }
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
        let pipeline = &self.0;
        let uid = node.upgrade().map(|node| node.uid().to_owned()).unwrap_or_default();
        pipeline.change(|state| {
            state.push(OutgoingEvent::of_node(EventType::NodeStarted, uid.clone()))
        });
        let mut tick = interval(pipeline.batch_delay);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut peers = BTreeSet::new();
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = pipeline.is_full.notified() => {}
            }
            let Some(node) = node.upgrade() else { return };
            let present: BTreeSet<String> =
                node.nodes(Instant::now()).into_iter().map(|peer| peer.uid).collect();
            pipeline.change(|state| {
                for gone in peers.difference(&present) {
                    state.push(OutgoingEvent::of_node(EventType::NodeGone, gone.clone()));
                }
            });
            peers = present;
            drop(node);
            pipeline.send_all(&uid).await;
        }
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
                    if state.occupancy.enter(&channel) {
                        state.push(OutgoingEvent::of_channel(EventType::Occupied, &channel));
                    }
                    let event = OutgoingEvent::of_client(EventType::Subscribed, client);
                    OutgoingEvent { channel: Some(channel), ..event }
                }
                ClientReport::Unsubscribed { client, channel } => {
                    state.occupancy.leave(&channel, Instant::now());
                    let event = OutgoingEvent::of_client(EventType::Unsubscribed, client);
                    OutgoingEvent { channel: Some(channel), ..event }
                }
                ClientReport::Disconnected { client, disconnect } => {
                    let event = OutgoingEvent::of_client(EventType::Disconnected, client);
                    let (code, reason) = (Some(disconnect.code), disconnect.reason.into_owned());
                    OutgoingEvent { code, reason, ..event }
                }
                ClientReport::ViewChanged { .. } => return,
            };
            state.push(event);
        });
    }

    /// Changes the state under its lock, so that events of a channel have one order.
    fn change(&self, change: impl FnOnce(&mut PipelineState)) {
        let is_full = {
            let mut state = self.state.lock();
            let before = state.queue.len();
            change(&mut state);
            before < self.batch_size && state.queue.len() >= self.batch_size
        };
        if is_full {
            self.is_full.notify_one();
        }
    }

    /// Sends what waits now, batch by batch; a failed one is tried again until the backend takes it.
    async fn send_all(&self, node: &str) {
        self.change(|state| {
            for channel in state.occupancy.vacated(Instant::now()) {
                state.push(OutgoingEvent::of_channel(EventType::Vacated, &channel));
            }
        });
        loop {
            let (count, body) = {
                let mut state = self.state.lock();
                let batch = state.queue.batch(self.batch_size, unix_ms());
                (batch.len(), event::encode(node, batch))
            };
            if count == 0 {
                return;
            }
            while let Err(error) = self.sender.send(body.clone()).await {
                self.counts.failed_requests.fetch_add(1, Relaxed);
                self.sender.pause(&error).await;
            }
            self.sender.succeeded();
            self.counts.sent.fetch_add(count as u64, Relaxed);
            self.state.lock().queue.remove(count);
        }
    }
}

impl PipelineState {
    fn push(&mut self, event: OutgoingEvent) {
        if self.types.contains(&event.r#type) {
            self.queue.push(event, unix_ms());
        }
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
