//! Simulations with players, and the areas of their worlds: what a room of [`Rooms`](crate::Rooms) runs.
//! In: joins, leaves and inputs of players in each tick → out: messages to players, to a tile, and views.
//! Uses `fanwire_room` and `fanwire_area`. Never: threads and sockets, which `rooms` has.
//! Changed here: what a simulation may name. How rooms are opened and closed is in `rooms.rs`.
//!
//! [`Rooms`](crate::Rooms) has a whole room. A simulation is tested without a server and a clock:
//!
//! ```
//! use std::time::Duration;
//!
//! use fanwire::room::{
//!     RoomCommand, Grid, Objects, Place, PlayerId, Room, RoomContext, RoomOutput, Shape, Simulation, View,
//! };
//!
//! /// Players stand still and see the objects around them.
//! struct Park(Objects);
//!
//! impl Simulation for Park {
//!     fn join(&mut self, player: PlayerId, user: &str, _data: &[u8], context: &mut RoomContext<'_>) {
//!         let place = Place { x: 10.0, y: 20.0, layer: 0 };
//!         let state = format!(r#"{{"user":"{user}"}}"#);
//!         self.0.put(player.0.into(), place, state).expect("the place is in the world");
//!         let shape = Shape::Circle { radius: 150.0 };
//!         context.set_view(player, View { x: place.x, y: place.y, layer: 0, shape, margin: 50.0 });
//!     }
//!
//!     fn leave(&mut self, player: PlayerId, _context: &mut RoomContext<'_>) {
//!         self.0.remove(player.0.into());
//!     }
//!
//!     fn input(&mut self, _player: PlayerId, _input: &[u8], _context: &mut RoomContext<'_>) {}
//!
//!     fn tick(&mut self, context: &mut RoomContext<'_>) {
//!         context.publish_objects(&mut self.0);
//!     }
//! }
//!
//! let mut room = Room::new(Park(Objects::new(Grid::new(100, 64))), Duration::from_millis(50));
//! let join = RoomCommand::Join { player: PlayerId(1), user: "ada".to_owned(), data: "".into() };
//! let outputs = room.tick([join]);
//! assert!(matches!(outputs, [RoomOutput::View(PlayerId(1), view)] if view.x == 10.0));
//! ```

/// ([example](self))
#[doc(inline)]
pub use fanwire_area::{AreaError, Grid, Objects, Place, Shape, Tile, View, ViewChange};
/// ([example](self))
#[doc(inline)]
pub use fanwire_room::{
    ChangedObjects, InputKind, InputLimits, InputRate, OutgoingMessage, Overrun, PlayerId,
    Receivers, RecordingError, Room, RoomCommand, RoomContext, RoomOutput, Simulation, replay,
};
