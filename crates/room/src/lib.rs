//! Rooms: a simulation with players that advances at a fixed rate, as values without threads, sockets and clocks.
//! In: joins, leaves and inputs of clients, and the time → out: the messages of each tick.
//! Uses `fanwire_area`, `bytes` and checksums. Never: IO, clocks; `fanwire` runs rooms on threads and sends their messages.
//! Changed here: the list of modules. `simulation.rs` is the interface for users.
//!
//! A simulation in which players push a ball along a line, with steering of which only the newest counts:
//!
//! ```
//! use std::time::Duration;
//!
//! use fanwire_room::{CommandQueue, RoomContext, InputKind, InputLimits, PlayerId, Room, RoomOutput, Simulation};
//!
//! #[derive(Default)]
//! struct Ball {
//!     position: f64,
//!     speed: f64,
//! }
//!
//! impl Simulation for Ball {
//!     fn kind(_input: &[u8]) -> InputKind {
//!         InputKind { newest_wins: true, ..InputKind::default() }
//!     }
//!
//!     fn join(&mut self, player: PlayerId, user: &str, _data: &[u8], context: &mut RoomContext<'_>) {
//!         context.reliable(format!(r#"{{"joined":{},"user":"{user}"}}"#, player.0));
//!     }
//!
//!     fn leave(&mut self, player: PlayerId, context: &mut RoomContext<'_>) {
//!         context.reliable(format!(r#"{{"left":{}}}"#, player.0));
//!     }
//!
//!     fn input(&mut self, _player: PlayerId, input: &[u8], _context: &mut RoomContext<'_>) {
//!         let push: Option<f64> = str::from_utf8(input).ok().and_then(|text| text.parse().ok());
//!         self.speed += push.filter(|push| push.is_finite()).unwrap_or(0.0);
//!     }
//!
//!     fn tick(&mut self, context: &mut RoomContext<'_>) {
//!         self.position += self.speed * context.duration().as_secs_f64();
//!         context.latest(format!(r#"{{"position":{}}}"#, self.position));
//!     }
//! }
//!
//! let mut queue = CommandQueue::new(InputLimits::default());
//! let mut room = Room::new(Ball::default(), Duration::from_millis(250));
//! queue.join("client-1", "ada", "".into()).expect("a new client");
//! for push in ["99", "2"] {
//!     queue.input("client-1", Ball::kind(push.as_bytes()), push.into(), Duration::ZERO).expect("a player");
//! }
//! let outputs = room.tick(queue.drain(Vec::new()));
//! let texts: Vec<_> = outputs.iter().map(|output| match output {
//!     RoomOutput::Message(message) => &message.data,
//!     RoomOutput::View(..) => unreachable!("the line has no views"),
//! }).collect();
//! assert_eq!(texts, [r#"{"joined":1,"user":"ada"}"#, r#"{"position":0.5}"#]);
//! ```
#![forbid(unsafe_code)]

mod changed_objects;
mod players;
mod queue;
mod rate;
mod recording;
mod room;
mod schedule;
mod simulation;

pub use changed_objects::ChangedObjects;
pub use players::PlayerId;
pub use queue::{CommandQueue, InputCounts, InputLimits, KINDS_MAX, RoomCommand, RoomCommandError};
pub use rate::InputRate;
pub use recording::{MAGIC, RecordingError, RecordingWriter, replay};
pub use room::Room;
pub use schedule::{Due, Overrun, Schedule};
pub use simulation::{InputKind, OutgoingMessage, Receivers, RoomContext, RoomOutput, Simulation};
