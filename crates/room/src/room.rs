//! A room: a simulation with its players and its ticks.
//! In: the commands of one tick → out: the messages of that tick, in order.
//! Uses `simulation`, `queue`. Never: a clock, threads, sockets.
//! Change here: the order of a tick. When ticks are due: `schedule.rs`.

use std::time::Duration;

use hashbrown::HashMap;

use crate::{Command, OutgoingMessage, PlayerId, RoomContext, Simulation};

/// A simulation, its players, and the number of its ticks.
#[derive(Debug)]
pub struct Room<S> {
    simulation: S,
    duration: Duration,
    tick: u64,
    /// The last applied sequence number of each player.
    players: HashMap<PlayerId, Option<u32>>,
    messages: Vec<OutgoingMessage>,
}

impl<S: Simulation> Room<S> {
    /// A room before its first tick. Each tick advances by `duration`.
    pub fn new(simulation: S, duration: Duration) -> Self {
        Self { simulation, duration, tick: 0, players: HashMap::new(), messages: Vec::new() }
    }

    /// Applies the commands in order, then advances by one tick. Returns what the simulation sent.
    ///
    /// A panic of the simulation passes through; the room is of no use after it.
    pub fn tick(&mut self, commands: impl IntoIterator<Item = Command>) -> &[OutgoingMessage] {
        self.tick += 1;
        self.messages.clear();
        commands.into_iter().for_each(|command| self.apply(command));
        let Self { simulation, duration, tick, players, messages } = self;
        simulation.tick(&mut RoomContext { tick: *tick, duration: *duration, players, messages });
        &self.messages
    }

    fn apply(&mut self, command: Command) {
        match &command {
            Command::Join { player, .. } => drop(self.players.insert(*player, None)),
            Command::Leave { player } => drop(self.players.remove(player)),
            Command::Input { player, sequence: Some(sequence), .. } => {
                self.players.insert(*player, Some(*sequence));
            }
            Command::Input { .. } => {}
        }
        let Self { simulation, duration, tick, players, messages } = self;
        let mut context = RoomContext { tick: *tick, duration: *duration, players, messages };
        match command {
            Command::Join { player, user, data } => {
                simulation.join(player, &user, &data, &mut context);
            }
            Command::Leave { player } => simulation.leave(player, &mut context),
            Command::Input { player, data, .. } => simulation.input(player, &data, &mut context),
        }
    }

    /// How many ticks have run.
    pub fn ticks(&self) -> u64 {
        self.tick
    }

    pub fn simulation(&self) -> &S {
        &self.simulation
    }
}
