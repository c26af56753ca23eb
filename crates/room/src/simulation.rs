//! The interface between a room and the simulation that it runs.
//! In: joins, leaves, inputs and ticks → out: messages to all players or to one, in the order of the calls.
//! Uses values only. Never: a clock, threads, random numbers; the simulation gets everything it may depend on.
//! Change here: what a simulation receives, and what it may send.

use std::time::Duration;

use bytes::Bytes;
use hashbrown::HashMap;

/// A simulation: one owner of a state that advances at a fixed rate.
///
/// A room calls these methods one at a time: in each tick first for all commands that arrived since the tick before, in their
/// order, then [`tick`](Self::tick). To be replayed from a recording, a simulation must depend on its arguments alone: on no
/// clock, no random numbers except from a seed, and no order of a hash map.
pub trait Simulation {
    /// How an input counts, read from its bytes. Called before the input waits for its tick, on another thread, so it must be
    /// short. By default inputs have one kind, and each of them counts.
    fn kind(_input: &[u8]) -> InputKind {
        InputKind::default()
    }

    /// A player joined. `user` is "" for anonymous users; `data` is what the client sent with its subscribe.
    fn join(&mut self, player: PlayerId, user: &str, data: &[u8], context: &mut RoomContext<'_>);

    /// A player left, or its connection ended.
    fn leave(&mut self, player: PlayerId, context: &mut RoomContext<'_>);

    /// A player sent an input.
    fn input(&mut self, player: PlayerId, input: &[u8], context: &mut RoomContext<'_>);

    /// Advances by [`RoomContext::duration`].
    fn tick(&mut self, context: &mut RoomContext<'_>);
}

/// Identifies a player of a room from its join to its leave. Ids begin with 1 and are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerId(pub u32);

/// How an input counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputKind {
    /// Below [`KINDS_MAX`](crate::KINDS_MAX). Each kind has a rate of its own.
    pub kind: u8,
    /// Of the inputs of this kind in a tick only the newest counts, as for steering.
    pub newest_wins: bool,
    /// Number of the input at its client, for prediction: [`RoomContext::sequence`] returns the last one applied.
    pub sequence: Option<u32>,
}

/// A message of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// `None` = all players.
    pub to: Option<PlayerId>,
    /// A newer message takes its place while it waits for a client that is too slow. Otherwise it is queued.
    pub is_latest: bool,
    pub data: Bytes,
}

/// What a simulation may see and do during a call.
#[derive(Debug)]
pub struct RoomContext<'a> {
    pub(crate) tick: u64,
    pub(crate) duration: Duration,
    /// The last applied sequence number of each player.
    pub(crate) players: &'a HashMap<PlayerId, Option<u32>>,
    pub(crate) messages: &'a mut Vec<OutgoingMessage>,
}

impl RoomContext<'_> {
    /// Number of the tick, from 1.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// The simulated time of one tick.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// How many players there are.
    pub fn player_count(&self) -> usize {
        self.players.len()
    }

    /// The sequence number of the last input of a player that was applied, to be sent back to its client.
    pub fn sequence(&self, player: PlayerId) -> Option<u32> {
        self.players.get(&player).copied().flatten()
    }

    /// Sends state to all players: while it waits for a slow client, a newer state takes its place.
    pub fn latest(&mut self, data: impl Into<Bytes>) {
        self.send(None, true, data);
    }

    /// Sends an event to all players: none is left out for a client that stays connected.
    pub fn reliable(&mut self, data: impl Into<Bytes>) {
        self.send(None, false, data);
    }

    /// Sends state to one player.
    pub fn latest_to(&mut self, player: PlayerId, data: impl Into<Bytes>) {
        self.send(Some(player), true, data);
    }

    /// Sends an event to one player.
    pub fn reliable_to(&mut self, player: PlayerId, data: impl Into<Bytes>) {
        self.send(Some(player), false, data);
    }

    fn send(&mut self, to: Option<PlayerId>, is_latest: bool, data: impl Into<Bytes>) {
        self.messages.push(OutgoingMessage { to, is_latest, data: data.into() });
    }
}
