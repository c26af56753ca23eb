//! One room while it runs: its commands, its ticks, and the publication of its messages.
//! In: joins, leaves and inputs on any thread; ticks on a thread of the pool → out: publications through the node.
//! Uses `fanwire_room` for the rules; a lock for the commands, which no tick holds. Never: waits.
//! Changed here: what is measured of a tick, and what happens when a simulation panics or falls behind.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use fanwire_area::ViewChange;
use fanwire_broker::{ClientId, DeliveryClass, PublishOptions};
use fanwire_cluster::ConnectionSelector;
use fanwire_metrics::TickTimes;
use fanwire_node::Node;
use fanwire_protocol::{ClientInfo, Publication};
use fanwire_room::{
    CommandQueue, InputCounts, InputKind, PlayerId, Receivers, RecordingWriter, Room, RoomCommand,
    RoomCommandError, RoomOutput, Schedule, Simulation,
};
use fanwire_telemetry::{BOUNDS, CallHistogram};
use hashbrown::HashMap;
use parking_lot::Mutex;

use super::{RoomOptions, RoomTable};

/// The part of a room that the threads of the server share.
pub(super) struct RoomState {
    channel: Box<str>,
    started: Instant,
    kind: fn(&[u8]) -> InputKind,
    queue: Mutex<RoomQueue>,
    counters: Mutex<RoomStats>,
    tick_times: CallHistogram,
    /// Those of all rooms of its kind.
    times_of_kind: Arc<TickTimes>,
    recording: Mutex<Vec<u8>>,
}

struct RoomQueue {
    queue: CommandQueue,
    players: HashMap<PlayerId, Player>,
    has_ended: bool,
}

struct Player {
    client: ClientId,
    selector: ConnectionSelector,
}

/// Counts and times of a room since its start; [`Rooms::stats`](crate::Rooms::stats) returns them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoomStats {
    pub players: usize,
    pub ticks: u64,
    /// Ticks that were late by a period or more.
    pub overruns: u64,
    /// From the commands of a tick to the publication of its last message: the times that 50, 95 and 99 of 100 ticks did not
    /// exceed, rounded up to a power of two of microseconds.
    pub tick_p50: Duration,
    pub tick_p95: Duration,
    pub tick_p99: Duration,
    /// Commands that wait for the next tick.
    pub waiting: usize,
    pub inputs: InputCounts,
    /// Messages of the simulation, and their bytes, before each is sent to its receivers.
    pub messages: u64,
    pub bytes: u64,
    /// Messages that could not be published and impossible views.
    pub failed_outputs: u64,
}

impl RoomStats {
    /// Adds the counts of another room, without the times of its ticks.
    pub(super) fn add(&mut self, other: &Self) {
        self.players += other.players;
        self.waiting += other.waiting;
        self.ticks += other.ticks;
        self.overruns += other.overruns;
        self.inputs.accepted += other.inputs.accepted;
        self.inputs.replaced += other.inputs.replaced;
        self.inputs.refused += other.inputs.refused;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.failed_outputs += other.failed_outputs;
    }
}

/// The part of a room that its ticks own.
pub(super) struct RunningRoom {
    state: Arc<RoomState>,
    room: Box<dyn Tick>,
    schedule: Schedule,
    recorder: Option<RecordingWriter>,
    shared: Weak<RoomTable>,
    /// The commands of the last tick, for their capacity.
    spare: Vec<RoomCommand>,
    warned_at: Option<Instant>,
}

/// A room of any simulation.
trait Tick: Send {
    fn tick(&mut self, commands: &mut Vec<RoomCommand>) -> &[RoomOutput];
    fn ticks(&self) -> u64;
}

impl<S: Simulation + Send> Tick for Room<S> {
    fn tick(&mut self, commands: &mut Vec<RoomCommand>) -> &[RoomOutput] {
        Room::tick(self, commands.drain(..))
    }

    fn ticks(&self) -> u64 {
        Room::ticks(self)
    }
}

impl RoomState {
    pub(super) fn new<S: Simulation>(options: &RoomOptions, times_of_kind: Arc<TickTimes>) -> Self {
        let queue = RoomQueue {
            queue: CommandQueue::new(options.inputs),
            players: HashMap::new(),
            has_ended: false,
        };
        let (counters, tick_times, recording) = Default::default();
        Self {
            channel: options.channel.as_str().into(),
            started: Instant::now(),
            kind: S::kind,
            queue: Mutex::new(queue),
            counters,
            tick_times,
            times_of_kind,
            recording,
        }
    }

    /// A client becomes a player. Without effect if it is one.
    ///
    /// # Errors
    /// The room has ended; returns the client that must be unsubscribed.
    pub(super) fn join(&self, info: &ClientInfo, data: Bytes) -> Result<(), ConnectionSelector> {
        let selector = ConnectionSelector {
            user: info.user.clone(),
            client: info.client.clone(),
            ..ConnectionSelector::default()
        };
        let mut queue = self.queue.lock();
        if queue.has_ended {
            return Err(selector);
        }
        let Some(client) = ClientId::parse(&info.client) else { return Ok(()) };
        if let Ok(player) = queue.queue.join(&info.client, &info.user, data) {
            queue.players.insert(player, Player { client, selector });
        }
        Ok(())
    }

    pub(super) fn leave(&self, client: &str) {
        let mut queue = self.queue.lock();
        if let Some(player) = queue.queue.leave(client) {
            queue.players.remove(&player);
        }
    }

    pub(super) fn view(&self, client: &str, change: ViewChange) {
        self.queue.lock().queue.view(client, change);
    }

    /// # Errors
    /// See [`RoomCommandError`].
    pub(super) fn input(&self, client: &str, data: Bytes) -> Result<(), RoomCommandError> {
        let kind = (self.kind)(&data);
        let now = self.started.elapsed();
        self.queue.lock().queue.input(client, kind, data, now)
    }

    /// No tick begins after this call. Returns the players.
    pub(super) fn end(&self) -> Vec<ConnectionSelector> {
        let mut queue = self.queue.lock();
        queue.has_ended = true;
        queue.players.drain().map(|(_, player)| player.selector).collect()
    }

    /// Takes the commands that wait; `None` when the room has ended.
    fn drain(&self, spare: Vec<RoomCommand>) -> Option<Vec<RoomCommand>> {
        let mut queue = self.queue.lock();
        if queue.has_ended { None } else { Some(queue.queue.drain(spare)) }
    }

    pub(super) fn take_recording(&self) -> Vec<u8> {
        mem::take(&mut self.recording.lock())
    }

    pub(super) fn stats(&self) -> RoomStats {
        let [tick_p50, tick_p95, tick_p99] = [50, 95, 99].map(|share| self.tick_time(share));
        let queue = self.queue.lock();
        RoomStats {
            players: queue.players.len(),
            waiting: queue.queue.waiting(),
            inputs: queue.queue.counts(),
            tick_p50,
            tick_p95,
            tick_p99,
            ..*self.counters.lock()
        }
    }

    /// The time that so many of 100 ticks did not exceed.
    fn tick_time(&self, share: u64) -> Duration {
        let (counts, _) = self.tick_times.snapshot();
        let wanted = (counts.iter().sum::<u64>() * share).div_ceil(100);
        let mut seen = 0;
        for (bucket, count) in counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_micros(CallHistogram::bound_us(bucket.min(BOUNDS - 1)));
            }
        }
        Duration::ZERO
    }
}

impl RunningRoom {
    pub(super) fn new<S: Simulation + Send + 'static>(
        state: Arc<RoomState>,
        simulation: S,
        options: &RoomOptions,
        shared: Weak<RoomTable>,
    ) -> Self {
        let schedule = Schedule::new(options.ticks_per_second, options.overrun);
        let period = schedule.period();
        Self {
            state,
            room: Box::new(Room::new(simulation, period)),
            schedule,
            recorder: options.records.then(|| RecordingWriter::new(period)),
            shared,
            spare: Vec::new(),
            warned_at: None,
        }
    }

    /// When the next tick is due.
    pub(super) fn due(&self) -> Instant {
        self.state.started + self.schedule.next()
    }

    /// Runs the ticks that are due, and adds their times. Returns when the next one is; `None` when the room has ended.
    pub(super) fn run(&mut self, now: Instant) -> Option<Instant> {
        let due = self.schedule.due(now.saturating_duration_since(self.state.started));
        for _ in 0..due.run {
            let Some(commands) = self.state.drain(mem::take(&mut self.spare)) else {
                return self.end();
            };
            let shared = self.shared.upgrade()?;
            let node = shared.node();
            let started = Instant::now();
            let tick = || self.tick(commands, node.as_deref(), started);
            let ticked = catch_unwind(AssertUnwindSafe(tick));
            let elapsed = started.elapsed();
            self.state.tick_times.observe(elapsed);
            self.state.times_of_kind.observe(elapsed);
            if ticked.is_err() {
                let channel = &self.state.channel;
                tracing::error!(%channel, tick = self.room.ticks(), "the simulation of a room panicked: the room ends");
                shared.end(channel);
                return self.end();
            }
        }
        self.state.counters.lock().overruns = self.schedule.overruns();
        if due.run > 1 || due.skipped > 0 {
            self.warn_of_overruns(now);
        }
        Some(self.due())
    }

    fn tick(&mut self, mut commands: Vec<RoomCommand>, node: Option<&Node>, started: Instant) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(self.room.ticks() + 1, &commands);
            self.state.recording.lock().extend(recorder.take());
        }
        let mut messages = 0;
        let mut bytes = 0;
        let mut failed = 0;
        for output in self.room.tick(&mut commands) {
            if let RoomOutput::Message(message) = output {
                messages += 1;
                bytes += message.data.len() as u64;
            }
            let is_done = node.is_none_or(|node| self.state.carry_out(node, output, started));
            failed += u64::from(!is_done);
        }
        let mut counters = self.state.counters.lock();
        counters.ticks += 1;
        counters.messages += messages;
        counters.bytes += bytes;
        counters.failed_outputs += failed;
        drop(counters);
        self.spare = commands;
    }

    /// A line once a minute, with the counts since the start.
    fn warn_of_overruns(&mut self, now: Instant) {
        if self.warned_at.is_some_and(|at| now.saturating_duration_since(at) < WARNING_INTERVAL) {
            return;
        }
        self.warned_at = Some(now);
        let RoomStats { ticks, overruns, tick_p99, players, .. } = self.state.stats();
        let channel = &self.state.channel;
        tracing::warn!(%channel, ticks, overruns, ?tick_p99, players, "a room falls behind: its ticks take too long, or the machine is busy");
    }

    /// Ends the recording.
    fn end(&mut self) -> Option<Instant> {
        if let Some(mut recorder) = self.recorder.take() {
            recorder.finish(self.room.ticks());
            self.state.recording.lock().extend(recorder.take());
        }
        None
    }
}

impl RoomState {
    /// Publishes a message or sets a view. Returns false if that is impossible; an engine that answers later is not waited for.
    /// A player that left since the commands of this tick gets nothing.
    fn carry_out(&self, node: &Node, output: &RoomOutput, now: Instant) -> bool {
        let message = match output {
            RoomOutput::Message(message) => message,
            RoomOutput::View(player, view) => {
                return self.client(*player).is_none_or(|client| {
                    node.connections().set_view(client, &self.channel, *view).is_ok()
                });
            }
        };
        let class = if message.is_latest { DeliveryClass::Latest } else { DeliveryClass::Reliable };
        let options = PublishOptions { delivery: Some(class), ..PublishOptions::default() };
        let data = message.data.clone();
        let tags = message.tags.clone();
        let publication = Publication { data, tags, ..Publication::default() };
        let published = match message.to {
            Receivers::All => node.channels().publish(&self.channel, publication, options, now),
            Receivers::Tile(tile) => {
                node.channels().publish_in(tile, &self.channel, publication, options, now)
            }
            Receivers::Player(player) => {
                return self.client(player).is_none_or(|client| {
                    node.channels()
                        .publish_to(client, &self.channel, publication, Some(class), now)
                        .is_ok()
                });
            }
        };
        published.ready().map_or(true, |result| result.is_ok())
    }

    fn client(&self, player: PlayerId) -> Option<ClientId> {
        self.queue.lock().players.get(&player).map(|player| player.client)
    }
}

/// Between two warnings of one room.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);
