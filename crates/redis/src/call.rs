//! Calls of commands: a command, its route, and the caller that gets its reply.
//! In: a command, a handler → out: the same, until the handler gets the reply or a failure.
//! Uses: nothing but the command. Never: connections.
//! Changed here: what belongs to a call. `command_connection.rs` sends calls, `redirect.rs` routes them again.

use std::time::Instant;

use redis::{Cmd, Value};

use super::error::Failure;
use super::wire::RedisCommand;

/// Takes a reply. It runs on the connection's task, so it must be short.
type Done = Box<dyn FnOnce(Result<Value, Failure>) + Send>;

/// A command in the queue.
pub(crate) struct Call {
    pub(super) command: Cmd,
    pub(super) bytes: usize,
    pub(super) is_write: bool,
    pub(super) caller: Caller,
}

/// Gets a reply. If it is dropped without one, the caller gets a failure.
pub(super) struct Caller {
    pub(super) done: Option<Done>,
    pub(super) is_repeated: bool,
    pub(super) route: Route,
}

impl Call {
    /// A command without a reply handler.
    pub(super) fn of(command: RedisCommand) -> Self {
        let caller = Caller { done: None, is_repeated: true, route: Route::default() };
        Self { command: command.into_cmd(), bytes: 0, is_write: false, caller }
    }

    pub(crate) fn route(&self) -> Route {
        self.caller.route
    }

    /// The same call on another route.
    pub(crate) fn on(mut self, route: Route) -> Self {
        self.caller.route = route;
        self.caller.is_repeated = false;
        self
    }

    /// Completes the call with a failure.
    pub(crate) fn fail(self) {
        self.caller.finish(Err(Failure::Unavailable));
    }
}

impl Caller {
    pub(super) fn finish(self, result: Result<Value, Failure>) {
        if let Some(done) = self.done {
            done(result);
        }
    }
}

/// The route of a call in a Cluster.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Route {
    pub(crate) slot: u16,
    /// The index of the connection, the same at each Redis.
    pub(crate) connection_index: usize,
    /// How often the call was redirected.
    pub(crate) redirect_count: u8,
    /// Send `ASKING` first, because the slot is being migrated to this Redis.
    pub(crate) is_asking: bool,
    /// Time until which the call may wait for its slot; set by the first redirect.
    pub(crate) wait_deadline: Option<Instant>,
}
