//! Policy: the options of a node, and what a client may do by them, in which channel and at which rate.
//! In: options once, then names, tags, positions, times → out: permissions, refusals, what a returning client gets.
//! Pure: no session, no socket, no clock. `hooks` is the port for decisions that an application makes.
//! Changed here: the list of modules. Options are in `options`, rules of channels in `channel`.

#![forbid(unsafe_code)]

pub mod channel;
pub mod filter;
pub mod hooks;
pub mod options;
pub mod recovery;
pub mod shared_poll;
pub mod tiles;

mod debug_list;
mod glob;
mod limits;
mod node_settings;
mod validate;

pub use debug_list::{DEBUG_FOR_TARGET, DebugList, DebugSubject};
pub use glob::Glob;
pub use limits::{AddressCounts, AddressFull, AddressPlace, ExceededCounts};
pub use limits::{InNamespace, NamespaceAction, RateLimits, SavedRates, TokenBucket};
pub use limits::{SharedRates, TakenTokens, Tenant};
pub use node_settings::{CurrentSettings, NodeSettings};
