//! The interface between a room and the simulation that it runs.
//! In: joins, leaves, inputs and ticks → out: messages to all players, to one or to those that see a tile, in the order of the calls.
//! Uses values only. Never: a clock, threads, random numbers; the simulation gets everything it may depend on.
//! Changed here: what a simulation receives, and what it may send.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use fanwire_area::{Objects, Tile, View, ViewChange};

use crate::players::{PlayerId, Players};
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

/// How an input counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputKind {
    /// Below [`KINDS_MAX`](crate::KINDS_MAX). Each kind has a rate of its own.
    pub kind: u8,
    /// Only the newest input of this kind in a tick counts, as for steering.
    pub newest_wins: bool,
    /// Number of the input at its client, for prediction: [`RoomContext::sequence`] returns the last one applied.
    pub sequence: Option<u32>,
}

/// Effect of a simulation outside of it.
#[derive(Clone, Debug, PartialEq)]
pub enum RoomOutput {
    Message(OutgoingMessage),
    /// The player sees this part of the world from now on.
    View(PlayerId, View),
}

/// A message of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingMessage {
    pub to: Receivers,
    /// A newer message takes its place while it waits for a client that is too slow. Otherwise it is queued.
    pub is_latest: bool,
    pub data: Bytes,
    /// Name and value, for the filters of players.
    pub tags: BTreeMap<String, String>,
}

/// The players that receive a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receivers {
    All,
    Player(PlayerId),
    /// Players whose view touches the tile.
    Tile(Tile),
}

/// Data and effects that a simulation may use during a call.
#[derive(Debug)]
pub struct RoomContext<'a> {
    pub(crate) tick: u64,
    pub(crate) duration: Duration,
    pub(crate) players: &'a Players,
    /// Changes of views since the objects were published.
    pub(crate) view_changes: &'a mut BTreeMap<PlayerId, ViewChange>,
    pub(crate) outputs: &'a mut Vec<RoomOutput>,
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
        self.players.count()
    }

    /// The sequence number of the last input of a player that was applied, to be sent back to its client.
    pub fn sequence(&self, player: PlayerId) -> Option<u32> {
        self.players.sequence(player)
    }

    /// Sends state to all players: while it waits for a slow client, a newer state takes its place.
    pub fn latest(&mut self, data: impl Into<Bytes>) {
        self.send(Receivers::All, true, data);
    }

    /// Sends an event to all players: none is left out for a client that stays connected.
    pub fn reliable(&mut self, data: impl Into<Bytes>) {
        self.send(Receivers::All, false, data);
    }

    /// Sends state to one player.
    pub fn latest_to(&mut self, player: PlayerId, data: impl Into<Bytes>) {
        self.send(Receivers::Player(player), true, data);
    }

    /// Sends an event to one player.
    pub fn reliable_to(&mut self, player: PlayerId, data: impl Into<Bytes>) {
        self.send(Receivers::Player(player), false, data);
    }

    /// Sends state to the players whose view touches a tile. Needs a channel with places.
    pub fn latest_in(&mut self, tile: Tile, data: impl Into<Bytes>) {
        self.send(Receivers::Tile(tile), true, data);
    }

    /// Sends an event to the players whose view touches a tile. Needs a channel with places.
    pub fn reliable_in(&mut self, tile: Tile, data: impl Into<Bytes>) {
        self.send(Receivers::Tile(tile), false, data);
    }

    /// Sends state with a tag, such as a team: the filter that the server set for a player decides whether it arrives.
    pub fn latest_tagged(&mut self, name: &str, value: &str, data: impl Into<Bytes>) {
        self.send_tagged(true, BTreeMap::from([(name.to_owned(), value.to_owned())]), data);
    }

    /// Sends an event with a tag.
    pub fn reliable_tagged(&mut self, name: &str, value: &str, data: impl Into<Bytes>) {
        self.send_tagged(false, BTreeMap::from([(name.to_owned(), value.to_owned())]), data);
    }

    /// Sets what a player sees of a channel with places. A view with more tiles than `area_tiles_max` changes nothing.
    pub fn set_view(&mut self, player: PlayerId, view: View) {
        self.outputs.push(RoomOutput::View(player, view));
    }

    /// Sends the changes of objects to the players whose view touches their tiles. Each player whose view changed also receives
    /// the tiles that it left, and the objects of the tiles that it entered. Call it in each tick, or in every nth one.
    pub fn publish_objects(&mut self, objects: &mut Objects) {
        let players = self.players;
        for (tile, text) in objects.update(|tile| players.see(tile)) {
            self.reliable_in(tile, text);
        }
        for (player, change) in std::mem::take(self.view_changes) {
            for text in objects.change_of_view(&change) {
                self.reliable_to(player, text);
            }
        }
    }

    fn send(&mut self, to: Receivers, is_latest: bool, data: impl Into<Bytes>) {
        let message = OutgoingMessage { to, is_latest, data: data.into(), tags: BTreeMap::new() };
        self.outputs.push(RoomOutput::Message(message));
    }

    fn send_tagged(
        &mut self,
        is_latest: bool,
        tags: BTreeMap<String, String>,
        data: impl Into<Bytes>,
    ) {
        let to = Receivers::All;
        let message = OutgoingMessage { to, is_latest, data: data.into(), tags };
        self.outputs.push(RoomOutput::Message(message));
    }
}
