//! Gap coding: context-takeover ratios (RFC 7692 §7.1.1.1) when one publication goes to many peers.
//! A channel's publications → one parse each, and from it a frame for each distinct position of the
//! earlier ones in the peers' windows. Pure: no IO, no clock; sources are one channel, one encoding.
//! Changed here: the public items. Histories, parses and the state of a peer's window are in the modules.

mod history;
mod parse;
mod publication;
mod stream;
mod trial;
mod window;

pub use history::History;
pub use parse::Parse;
pub use publication::{DEPTH_MAX, Depth, Publication, RUN_DEPTHS};
pub use trial::Trial;
pub use window::{EmbeddedPart, Reference, SubscriptionWindow, WindowCounter};
