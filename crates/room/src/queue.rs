//! The commands of clients that wait for the next tick of their room.
//! In: joins, leaves and inputs as they arrive → out: all of them in order, once per tick.
//! Uses `rate`, the time as a parameter. Never: the simulation.
//! Changed here: limits of inputs, and which inputs replace each other. `room.rs` applies commands.

use std::time::Duration;

use bytes::Bytes;
use fanwire_area::ViewChange;
use hashbrown::HashMap;

use crate::rate::{InputRate, TokenBucket};
use crate::{InputKind, PlayerId};

/// A command of a client, as a simulation receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomCommand {
    Join {
        player: PlayerId,
        user: String,
        data: Bytes,
    },
    Leave {
        player: PlayerId,
    },
    Input {
        player: PlayerId,
        sequence: Option<u32>,
        data: Bytes,
    },
    /// The player sees other tiles.
    View {
        player: PlayerId,
        change: ViewChange,
    },
}

/// Limits of the inputs of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    /// Inputs of each player and kind.
    pub rate: InputRate,
    /// Bytes of one input.
    pub bytes_max: usize,
    /// Inputs that wait for a tick. Joins and leaves have no limit, because there are at most as many as connections.
    pub waiting_max: usize,
}

/// The reason why a command was refused. Other players are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoomCommandError {
    /// A join of a client that is a player already.
    JoinedAlready,
    /// An input of a client that is no player.
    NotJoined,
    /// An input longer than [`InputLimits::bytes_max`].
    TooLong,
    /// A kind that is not below [`KINDS_MAX`].
    UnknownKind,
    /// The player sent more inputs of this kind than [`InputLimits::rate`] allows.
    RateExceeded,
    /// An input while [`InputLimits::waiting_max`] inputs wait.
    QueueFull,
}

/// Kinds of inputs that a simulation may have.
pub const KINDS_MAX: u8 = 16;

/// Counts since the start of a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputCounts {
    pub accepted: u64,
    /// Accepted inputs that a newer one replaced before its tick.
    pub replaced: u64,
    pub refused: u64,
}

/// The commands that wait for the next tick of a room.
#[derive(Debug)]
pub struct CommandQueue {
    limits: InputLimits,
    /// Inputs by client.
    players: HashMap<Box<str>, Inputs>,
    last_player: u32,
    commands: Vec<RoomCommand>,
    waiting_inputs: usize,
    /// Number of drains, by which old places in `commands` are recognised.
    drains: u64,
    counts: InputCounts,
}

/// The inputs of one player.
#[derive(Debug)]
struct Inputs {
    player: PlayerId,
    /// Inputs by kind, as far as the player has used kinds.
    kinds: Vec<KindState>,
}

#[derive(Clone, Debug, Default)]
struct KindState {
    bucket: TokenBucket,
    /// The input that a newer one replaces: number of the drain it waits for, place in `commands`.
    waiting: Option<(u64, usize)>,
}

impl Default for InputLimits {
    /// 60 inputs of a kind per second, 4 KiB each, 65,536 waiting in a room.
    fn default() -> Self {
        Self {
            rate: InputRate { per_second: 60, burst: 60 },
            bytes_max: 4 << 10,
            waiting_max: 1 << 16,
        }
    }
}

impl CommandQueue {
    pub fn new(limits: InputLimits) -> Self {
        Self {
            limits,
            players: HashMap::new(),
            last_player: 0,
            commands: Vec::new(),
            waiting_inputs: 0,
            drains: 0,
            counts: InputCounts::default(),
        }
    }

    /// A client joins, and is a player from now on.
    ///
    /// # Errors
    /// [`RoomCommandError::JoinedAlready`].
    pub fn join(
        &mut self,
        client: &str,
        user: &str,
        data: Bytes,
    ) -> Result<PlayerId, RoomCommandError> {
        if self.players.contains_key(client) {
            return Err(RoomCommandError::JoinedAlready);
        }
        self.last_player += 1;
        let player = PlayerId(self.last_player);
        self.players.insert(client.into(), Inputs { player, kinds: Vec::new() });
        self.commands.push(RoomCommand::Join { player, user: user.to_owned(), data });
        Ok(player)
    }

    /// A client leaves. Returns the player that it was; `None` if it was none.
    pub fn leave(&mut self, client: &str) -> Option<PlayerId> {
        let player = self.players.remove(client)?.player;
        self.commands.push(RoomCommand::Leave { player });
        Some(player)
    }

    /// The view of a client touches other tiles. Without effect for a client that is no player.
    pub fn view(&mut self, client: &str, change: ViewChange) {
        if let Some(Inputs { player, .. }) = self.players.get(client) {
            self.commands.push(RoomCommand::View { player: *player, change });
        }
    }

    /// A client sends an input, at this time since the start of the room.
    ///
    /// # Errors
    /// Each [`RoomCommandError`] except `JoinedAlready`; the input is dropped then.
    pub fn input(
        &mut self,
        client: &str,
        kind: InputKind,
        data: Bytes,
        now: Duration,
    ) -> Result<(), RoomCommandError> {
        let result = self.try_input(client, kind, data, now);
        match result {
            Ok(()) => self.counts.accepted += 1,
            Err(_) => self.counts.refused += 1,
        }
        result
    }

    fn try_input(
        &mut self,
        client: &str,
        InputKind { kind, newest_wins, sequence }: InputKind,
        data: Bytes,
        now: Duration,
    ) -> Result<(), RoomCommandError> {
        let Inputs { player, kinds } =
            self.players.get_mut(client).ok_or(RoomCommandError::NotJoined)?;
        if data.len() > self.limits.bytes_max {
            return Err(RoomCommandError::TooLong);
        }
        if kind >= KINDS_MAX {
            return Err(RoomCommandError::UnknownKind);
        }
        let kind = usize::from(kind);
        if kinds.len() <= kind {
            kinds.resize(kind + 1, KindState::default());
        }
        let KindState { bucket, waiting } = &mut kinds[kind];
        if !bucket.take(self.limits.rate, now) {
            return Err(RoomCommandError::RateExceeded);
        }
        let input = RoomCommand::Input { player: *player, sequence, data };
        match *waiting {
            Some((drain, place)) if newest_wins && drain == self.drains => {
                self.commands[place] = input;
                self.counts.replaced += 1;
                return Ok(());
            }
            _ if self.waiting_inputs >= self.limits.waiting_max => {
                return Err(RoomCommandError::QueueFull);
            }
            _ => {}
        }
        *waiting = newest_wins.then_some((self.drains, self.commands.len()));
        self.commands.push(input);
        self.waiting_inputs += 1;
        Ok(())
    }

    /// Returns the waiting commands in order, and leaves `empty`, whose capacity is used again, in their place.
    pub fn drain(&mut self, mut empty: Vec<RoomCommand>) -> Vec<RoomCommand> {
        empty.clear();
        self.waiting_inputs = 0;
        self.drains += 1;
        std::mem::replace(&mut self.commands, empty)
    }

    /// The clients that are players, with their ids.
    pub fn players(&self) -> impl Iterator<Item = (&str, PlayerId)> {
        self.players.iter().map(|(client, inputs)| (client.as_ref(), inputs.player))
    }

    /// How many commands wait.
    pub fn waiting(&self) -> usize {
        self.commands.len()
    }

    pub fn counts(&self) -> InputCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests;
