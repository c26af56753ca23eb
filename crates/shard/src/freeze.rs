//! The steps in which a shard stops for a takeover, and the commands while it stands still.
//! In: who waits for a step, connections → out: the same, on the thread of the shard.
//! Uses channels. Never: the order of the steps, which is `takeover`.
//! Changed here: what a shard can be asked for. What it does is `turn::frozen`, the format of a connection `saved_connection`.

use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
};

use crate::new_connection::Permit;

/// A function that receives the connections of shards that are frozen, on the threads of all of them: the records of some, each behind its
/// length, and their sockets in the same order, at most [`GIVEN_MAX`]. The sockets are the shard's until the end of the call. After an
/// error the shard gives no further connection.
pub type ConnectionSink = dyn Fn(&[u8], &[BorrowedFd<'_>]) -> io::Result<()> + Send + Sync;

/// Connections that another program had: what one call of a [`ConnectionSink`] got.
pub struct MovedConnections {
    pub records: Vec<u8>,
    pub sockets: Vec<OwnedFd>,
}

/// Connections in one call of a [`ConnectionSink`]: as many descriptors as a message between two processes may have (SCM_MAX_FD of
/// Linux).
pub const GIVEN_MAX: usize = 253;

/// Open connections by whether they can move to another program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MovableConnections {
    pub movable: usize,
    /// They have a session of TLS.
    pub encrypted: usize,
    /// A command waits for an answer, or the application has a reason.
    pub others: usize,
}

/// A step in which a shard stops or stands still. Each has a sender for the time when the step is done.
pub(crate) enum FreezeStep {
    /// Reads no more, and executes what it has; done when no connection waits for an answer.
    Pause(Sender<()>),
    /// Counts the connections by whether they can move.
    Count(Sender<MovableConnections>),
    /// Closes the connections that cannot move.
    CloseOthers(Sender<()>),
    /// Ends the turn, and does nothing more but these commands. The end of the channel lets it run on.
    Freeze(Sender<()>, Receiver<FrozenCommand>),
}

/// A command to a shard that is frozen.
pub(crate) enum FrozenCommand {
    /// Gives a record of each connection. Returns how many there are.
    Give(Arc<ConnectionSink>, Sender<io::Result<usize>>),
    /// Adds connections, which go on when the shard runs; each has a permit.
    Take(MovedConnections, Vec<Permit>),
    /// Returns how many connections were added and exist.
    Wait(Sender<usize>),
    /// Closes the connections that were added.
    CloseTaken(Sender<()>),
    /// The connections that were given belong to another program: they are dropped without a byte.
    Forget(Sender<()>),
}
