//! The connections of all shards for another program: the shards stop at one point, then give or take connections, then run on.
//! In: sockets and records, or a place for them → out: the same connections in another program, or all of them here as before.
//! Uses the inboxes and a channel for each shard. Never: the pair of sockets between the programs; what an application's record means.
//! Changed here: the order in which shards stop. What a shard does while it stands still is `turn::frozen`.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::AtomicUsize,
        mpsc::{Sender, SyncSender, channel, sync_channel},
    },
    time::{Duration, Instant},
};

use crate::{
    Application, ShardMessage, Shards,
    freeze::{ConnectionSink, FreezeStep, FrozenCommand, MovableConnections, MovedConnections},
    new_connection::Permit,
};

/// Shards that stand still. Dropping this value lets them run on with the connections that they have.
pub struct FrozenShards {
    shards: Vec<SyncSender<FrozenCommand>>,
    next: usize,
    /// How many connections there are.
    connections: Arc<AtomicUsize>,
}

impl<A: Application> Shards<A> {
    /// Stops all shards at one point: commands that wait for an answer have `patience` to finish, connections that cannot move are closed
    /// as in a shutdown, `stop_publishers` ends publications from elsewhere, then every message that was sent to a shard is served and
    /// written. Blocks.
    pub fn freeze(&self, patience: Duration, stop_publishers: impl FnOnce()) -> FrozenShards {
        let deadline = Instant::now() + patience;
        self.all(FreezeStep::Pause, Some(deadline));
        self.all(FreezeStep::CloseOthers, None);
        stop_publishers();
        let connections = Arc::clone(&self.connections);
        let mut frozen = FrozenShards { shards: Vec::new(), next: 0, connections };
        let step = |done| {
            let (sender, commands) = sync_channel(COMMANDS_MAX);
            frozen.shards.push(sender);
            FreezeStep::Freeze(done, commands)
        };
        self.all(step, None);
        frozen
    }

    /// Counts the connections that could move now. Blocks.
    pub fn count_movable(&self) -> MovableConnections {
        let (sender, counted) = channel();
        for inbox in self.inboxes() {
            inbox.push(ShardMessage::Freeze(FreezeStep::Count(sender.clone())), 0);
        }
        drop(sender);
        counted.iter().fold(MovableConnections::default(), |sum, one| MovableConnections {
            movable: sum.movable + one.movable,
            encrypted: sum.encrypted + one.encrypted,
            others: sum.others + one.others,
        })
    }

    /// Sends a step to all shards, and waits until each has done it, or until `deadline`.
    fn all(&self, mut step: impl FnMut(Sender<()>) -> FreezeStep, deadline: Option<Instant>) {
        let (sender, done) = channel();
        for inbox in self.inboxes() {
            inbox.push(ShardMessage::Freeze(step(sender.clone())), 0);
        }
        drop(sender);
        loop {
            let received = match deadline {
                // A shard that has ended drops its sender.
                None => done.recv().map_err(|_| ()),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    done.recv_timeout(left).map_err(|_| ())
                }
            };
            if received.is_err() {
                return;
            }
        }
    }
}

impl FrozenShards {
    /// Gives all connections to `sink`, which every shard calls. Returns how many there are. Blocks.
    ///
    /// # Errors
    /// The first error of `sink`.
    pub fn give(&self, sink: &Arc<ConnectionSink>) -> io::Result<usize> {
        let given = self.command_all(|given| FrozenCommand::Give(Arc::clone(sink), given));
        given.into_iter().sum()
    }

    /// Adds connections of another program to the next shard, round robin.
    pub fn take(&mut self, connections: MovedConnections) {
        let permit = |_: &OwnedFd| Permit::acquire(&self.connections, NO_LIMIT);
        let permits = connections.sockets.iter().filter_map(permit).collect();
        let shard = self.next % self.shards.len();
        self.next += 1;
        // A shard that has ended closes the sockets.
        let _ = self.shards[shard].send(FrozenCommand::Take(connections, permits));
    }

    /// Waits until the shards have the connections that they were to take. Returns how many there are.
    pub fn wait(&self) -> usize {
        self.command_all(FrozenCommand::Wait).into_iter().sum()
    }

    /// Closes the connections that the shards have taken. Blocks.
    pub fn close_taken(&self) {
        self.command_all(FrozenCommand::CloseTaken);
    }

    /// Drops the connections that were given, and lets the shards run on with the others. Blocks.
    pub fn forget(self) {
        self.command_all(FrozenCommand::Forget);
    }

    /// Sends a command to all shards, and waits until each has executed it. Returns their answers.
    fn command_all<T>(&self, command: impl Fn(Sender<T>) -> FrozenCommand) -> Vec<T> {
        let (sender, done) = channel();
        for shard in &self.shards {
            // A shard that has ended has no connections.
            let _ = shard.send(command(sender.clone()));
        }
        drop(sender);
        done.iter().collect()
    }
}

/// Calls of [`FrozenShards::take`] that wait for a shard.
const COMMANDS_MAX: usize = 4;

const NO_LIMIT: usize = 0;
