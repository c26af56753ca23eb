//! A room: a simulation with its players and its ticks.
//! In: the commands of one tick → out: the messages of that tick, in order.
//! Uses `simulation`, `queue`. Never: a clock, threads, sockets.
//! Changed here: the order of a tick. When ticks are due: `schedule.rs`.

use std::collections::BTreeMap;
use std::time::Duration;

use fanwire_area::ViewChange;

use crate::players::Players;
use crate::{PlayerId, RoomCommand, RoomContext, RoomOutput, Simulation};

/// A simulation, its players, and the number of its ticks.
#[derive(Debug)]
pub struct Room<S> {
    simulation: S,
    duration: Duration,
    tick: u64,
    players: Players,
    /// Since the simulation published its objects.
    view_changes: BTreeMap<PlayerId, ViewChange>,
    outputs: Vec<RoomOutput>,
}

impl<S: Simulation> Room<S> {
    /// A room before its first tick. Each tick advances by `duration`.
    pub fn new(simulation: S, duration: Duration) -> Self {
        Self {
            simulation,
            duration,
            tick: 0,
            players: Players::default(),
            view_changes: BTreeMap::new(),
            outputs: Vec::new(),
        }
    }

    /// Applies the commands in order, then advances by one tick. Returns what the simulation sent.
    ///
    /// A panic of the simulation passes through; the room is of no use after it.
    pub fn tick(&mut self, commands: impl IntoIterator<Item = RoomCommand>) -> &[RoomOutput] {
        self.tick += 1;
        self.outputs.clear();
        commands.into_iter().for_each(|command| self.apply(command));
        let (simulation, mut context) = self.parts();
        simulation.tick(&mut context);
        &self.outputs
    }

    fn apply(&mut self, command: RoomCommand) {
        match &command {
            RoomCommand::Join { player, .. } => self.players.join(*player),
            RoomCommand::Leave { player } => {
                self.players.leave(*player);
                self.view_changes.remove(player);
            }
            RoomCommand::Input { player, sequence: Some(sequence), .. } => {
                self.players.applied(*player, *sequence);
            }
            RoomCommand::View { player, change } => self.players.change_view(*player, change),
            RoomCommand::Input { .. } => {}
        }
        let (simulation, mut context) = self.parts();
        match command {
            RoomCommand::Join { player, user, data } => {
                simulation.join(player, &user, &data, &mut context);
            }
            RoomCommand::Leave { player } => simulation.leave(player, &mut context),
            RoomCommand::Input { player, data, .. } => {
                simulation.input(player, &data, &mut context)
            }
            RoomCommand::View { player, change } => {
                self.view_changes.entry(player).or_default().follow(change);
            }
        }
    }

    fn parts(&mut self) -> (&mut S, RoomContext<'_>) {
        let Self { simulation, duration, tick, players, view_changes, outputs } = self;
        let tick = *tick;
        let duration = *duration;
        (simulation, RoomContext { tick, duration, players, view_changes, outputs })
    }

    /// How many ticks have run.
    pub fn ticks(&self) -> u64 {
        self.tick
    }

    pub fn simulation(&self) -> &S {
        &self.simulation
    }
}
