//! Options of a server that are no configuration: a listener of the program, and hooks.
//! In: a configuration and these options → out: the same, for `server` and `embedded`, which start the server.
//! Uses values only.
//! Changed here: what a program may give a server besides its configuration.

use std::net::TcpListener;

use fanwire_config::Config;

use crate::{Hooks, Rooms, Takeover};

/// A server that is about to start, with [`start`](Self::start) in a tokio runtime or [`start_embedded`](Self::start_embedded)
/// without one. [`Hooks`] and [`Rooms`] have examples.
pub struct Builder {
    pub(crate) config: Config,
    pub(crate) listener: Option<TcpListener>,
    pub(crate) hooks: Hooks,
    pub(crate) rooms: Option<Rooms>,
    pub(crate) takeover: Option<Takeover>,
}

impl Builder {
    /// A server with this configuration.
    pub fn new(config: Config) -> Self {
        Self { config, listener: None, hooks: Hooks::new(), rooms: None, takeover: None }
    }

    /// The server goes on where another program stops, with its listeners and connections.
    pub fn take_over(self, takeover: Takeover) -> Self {
        Self { takeover: Some(takeover), ..self }
    }

    /// Clients connect to `listener`; `http_server.address` and `port` are ignored.
    pub fn listener(self, listener: TcpListener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// Sets the hooks.
    pub fn hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// Subscribers of the channels of these rooms are their players.
    pub fn rooms(self, rooms: &Rooms) -> Self {
        Self { rooms: Some(rooms.clone()), ..self }
    }
}
