//! Rooms of a running server: simulations whose players are the subscribers of a channel.
//! In: simulations, joins, leaves and inputs from the node's hooks → out: publications after each tick.
//! Uses `fanwire_room` for what a tick does, the pool of `rooms::pool` for when. Never: sockets.
//! Changed here: how rooms are opened and closed, and how clients become players. One room's tick: `rooms/running.rs`.

mod pool;
mod running;

use std::{
    num::NonZeroU32,
    sync::{Arc, OnceLock, Weak},
};

use fanwire_broker::Answer;
use fanwire_cluster::ConnectionSelector;
use fanwire_metrics::{RoomTotals, TickTimes};
use fanwire_node::{
    Node,
    hooks::{ClientReport, Hook, Hooks as NodeHooks, PublishEvent, PublishGrant, Rejection},
    options::ProxyRoute,
};
use fanwire_protocol::ErrorCode;
use fanwire_room::{InputLimits, Overrun, RoomCommandError, Simulation};
use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};

use self::{
    pool::Pool,
    running::{RoomState, RunningRoom},
};

pub use self::running::RoomStats;

/// The rooms of a server. Cheap to clone; any thread may use it.
///
/// Give it to [`Builder::rooms`](crate::Builder::rooms), then open rooms, before or after the server starts. A client that
/// subscribes to the channel of a room becomes a player; its permission to subscribe is the same as for any channel. What it
/// publishes there is an input, and is not published. When its subscription or its connection ends, the player leaves.
///
/// Players of a room are connected to this node; with several nodes, a balancer has to bring the players of a room together.
///
/// ```no_run
/// use fanwire::room::{PlayerId, RoomContext, Simulation};
/// use fanwire::{Builder, RoomOptions, Rooms, config::Config};
///
/// #[derive(Default)]
/// struct Counter(u64);
///
/// impl Simulation for Counter {
///     fn join(&mut self, _player: PlayerId, _user: &str, _data: &[u8], _context: &mut RoomContext<'_>) {}
///     fn leave(&mut self, _player: PlayerId, _context: &mut RoomContext<'_>) {}
///     fn input(&mut self, _player: PlayerId, _input: &[u8], _context: &mut RoomContext<'_>) {
///         self.0 += 1;
///     }
///     fn tick(&mut self, context: &mut RoomContext<'_>) {
///         context.latest(format!(r#"{{"inputs":{}}}"#, self.0));
///     }
/// }
///
/// let rooms = Rooms::new(1);
/// let server = Builder::new(Config::default()).rooms(&rooms).start_embedded()?;
/// rooms.open(RoomOptions::new("counter"), Counter::default())?;
/// let stats = rooms.stats("counter").expect("it is open");
/// println!("{} players after {} ticks", stats.players, stats.ticks);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Rooms(Arc<RoomTable>);

struct RoomTable {
    /// The rooms by channel.
    rooms: RwLock<HashMap<Box<str>, Arc<RoomState>>>,
    pool: Pool,
    /// Counts of the rooms that have ended.
    ended: Mutex<RoomStats>,
    /// Times of ticks by kind of room, at most [`KINDS_MAX`] and one more.
    tick_times: Mutex<Vec<Arc<TickTimes>>>,
    /// The node's hooks refer to these rooms.
    node: OnceLock<Weak<Node>>,
}

/// The options of one room. [`Rooms`] has an example.
#[derive(Clone, Debug)]
pub struct RoomOptions {
    /// The channel whose subscribers are the players.
    pub channel: String,
    pub ticks_per_second: NonZeroU32,
    pub overrun: Overrun,
    pub inputs: InputLimits,
    /// Keep a recording, for [`Rooms::take_recording`].
    pub records: bool,
    /// Label of the times of its ticks in metrics; "" by default. At most 16 kinds have one, further ones share `other`.
    pub kind: String,
}

/// Why a room was not opened, by [`Rooms::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoomError {
    /// There is a room with this channel already.
    #[error("there is a room with this channel")]
    Exists,
}

impl RoomOptions {
    /// 60 ticks per second; a tick that is late by a period or more is left out.
    pub fn new(channel: impl Into<String>) -> Self {
        Self {
            channel: channel.into(),
            ticks_per_second: NonZeroU32::new(60).expect("not 0"),
            overrun: Overrun::Skip,
            inputs: InputLimits::default(),
            records: false,
            kind: String::new(),
        }
    }
}

impl Rooms {
    /// No rooms yet, and `threads` that run their ticks, at least one. They end with the last clone of this value.
    pub fn new(threads: usize) -> Self {
        let (rooms, ended, node) = Default::default();
        let pool = Pool::start(threads.max(1));
        Self(Arc::new(RoomTable { rooms, pool, ended, tick_times: Mutex::default(), node }))
    }

    /// Opens a room. Its first tick is due after one period.
    ///
    /// # Errors
    /// [`RoomError::Exists`].
    pub fn open<S: Simulation + Send + 'static>(
        &self,
        options: RoomOptions,
        simulation: S,
    ) -> Result<(), RoomError> {
        let channel = Box::from(options.channel.as_str());
        let mut rooms = self.0.rooms.write();
        if rooms.contains_key(&channel) {
            return Err(RoomError::Exists);
        }
        let times_of_kind = self.0.times_of(&options.kind);
        let state = Arc::new(RoomState::new::<S>(&options, times_of_kind));
        rooms.insert(channel, Arc::clone(&state));
        drop(rooms);
        let shared = Arc::downgrade(&self.0);
        self.0.pool.add(RunningRoom::new(state, simulation, &options, shared));
        Ok(())
    }

    /// Closes a room after the tick that may be running. Its players stay connected and are unsubscribed with code 2000.
    /// Returns whether there was one.
    pub fn close(&self, channel: &str) -> bool {
        self.0.end(channel)
    }

    /// Counts and times of a room since its start; `None` without such a room.
    pub fn stats(&self, channel: &str) -> Option<RoomStats> {
        self.0.find(channel).map(|state| state.stats())
    }

    /// Sums over all rooms, with the counts of those that have ended.
    pub(crate) fn totals(&self) -> RoomTotals {
        let rooms: Vec<_> = self.0.rooms.read().values().map(Arc::clone).collect();
        let mut stats = *self.0.ended.lock();
        rooms.iter().for_each(|room| stats.add(&room.stats()));
        let tick_times = self.0.tick_times.lock().clone();
        RoomTotals {
            rooms: rooms.len(),
            players: stats.players,
            waiting: stats.waiting,
            ticks: stats.ticks,
            overruns: stats.overruns,
            inputs: stats.inputs.accepted,
            inputs_refused: stats.inputs.refused,
            messages: stats.messages,
            bytes: stats.bytes,
            failed_outputs: stats.failed_outputs,
            tick_times,
        }
    }

    /// Takes what the recording of a room contains since the last call; empty without one. The bytes of all calls together
    /// are the recording, see [`replay`](fanwire_room::replay). Take them now and then, because they wait in memory.
    pub fn take_recording(&self, channel: &str) -> Vec<u8> {
        self.0.find(channel).map_or_else(Vec::new, |state| state.take_recording())
    }

    /// Rooms send their messages through `node` from now on, and its hooks find their players.
    ///
    /// # Panics
    /// If they belong to a server already.
    pub(crate) fn attach(&self, node: &Arc<Node>) {
        assert!(self.0.node.set(Arc::downgrade(node)).is_ok(), "rooms belong to one server");
    }

    /// Adds what rooms need to the hooks of a program.
    pub(crate) fn extend(&self, hooks: &mut NodeHooks) {
        let shared = Arc::clone(&self.0);
        let other = hooks.publish.take();
        hooks.publish = Some(Hook::new(move |event: PublishEvent| {
            if let Some(room) = shared.find(&event.channel) {
                return Answer::now(match room.input(&event.client.client, event.data) {
                    Ok(()) => {
                        Ok(Some(PublishGrant { is_processed: true, ..PublishGrant::default() }))
                    }
                    Err(refused) => Err(Rejection::Error(code_of(refused).into())),
                });
            }
            other.as_ref().map_or_else(
                || Answer::now(Ok(None)),
                |hook| hook.call(event, ProxyRoute::default()),
            )
        }));
        let shared = Arc::clone(&self.0);
        let other = hooks.report.take();
        hooks.report = Some(Box::new(move |report: ClientReport| {
            shared.report(&report);
            other.iter().for_each(|other| other(report.clone()));
        }));
        let shared = Arc::clone(&self.0);
        hooks.stays = Some(Box::new(move |_: &str, channel: &str| shared.find(channel).is_some()));
    }
}

impl RoomTable {
    fn find(&self, channel: &str) -> Option<Arc<RoomState>> {
        self.rooms.read().get(channel).map(Arc::clone)
    }

    /// The times of ticks of a kind of room.
    fn times_of(&self, kind: &str) -> Arc<TickTimes> {
        let mut all = self.tick_times.lock();
        let find =
            |all: &[Arc<TickTimes>], kind| all.iter().find(|one| one.kind() == kind).cloned();
        if let Some(known) = find(&all, kind) {
            return known;
        }
        let label = if all.len() < KINDS_MAX { kind } else { OTHER_KIND };
        find(&all, label).unwrap_or_else(|| {
            let times = Arc::new(TickTimes::new(label));
            all.push(Arc::clone(&times));
            times
        })
    }

    fn node(&self) -> Option<Arc<Node>> {
        self.node.get().and_then(Weak::upgrade)
    }

    fn report(&self, report: &ClientReport) {
        match report {
            ClientReport::Subscribed { client, channel, data } => {
                let Some(room) = self.find(channel) else { return };
                if let Err(ended) = room.join(client, data.clone()) {
                    self.unsubscribe([ended], channel);
                }
            }
            ClientReport::Unsubscribed { client, channel } => {
                self.find(channel).iter().for_each(|room| room.leave(&client.client));
            }
            ClientReport::ViewChanged { client, channel, change } => {
                let room = self.find(channel);
                room.iter().for_each(|room| room.view(&client.client, change.clone()));
            }
            ClientReport::Connected { .. } | ClientReport::Disconnected { .. } => {}
        }
    }

    /// Removes a room and unsubscribes its players. Returns whether there was one.
    fn end(&self, channel: &str) -> bool {
        let Some(state) = self.rooms.write().remove(channel) else { return false };
        self.unsubscribe(state.end(), channel);
        self.ended.lock().add(&RoomStats { waiting: 0, ..state.stats() });
        true
    }

    fn unsubscribe(&self, players: impl IntoIterator<Item = ConnectionSelector>, channel: &str) {
        let Some(node) = self.node() else { return };
        for player in players {
            // The shards of this node have the command, also when another node was not reached.
            drop(node.connections().unsubscribe(player, Some(channel)));
        }
    }
}

/// Kinds of rooms with a label of their own.
const KINDS_MAX: usize = 16;
const OTHER_KIND: &str = "other";

/// The code that the client gets for a refused input.
fn code_of(error: RoomCommandError) -> ErrorCode {
    match error {
        RoomCommandError::NotJoined => ErrorCode::PERMISSION_DENIED,
        RoomCommandError::JoinedAlready => ErrorCode::ALREADY_SUBSCRIBED,
        RoomCommandError::TooLong | RoomCommandError::UnknownKind => ErrorCode::BAD_REQUEST,
        RoomCommandError::RateExceeded | RoomCommandError::QueueFull => {
            ErrorCode::TOO_MANY_REQUESTS
        }
    }
}
