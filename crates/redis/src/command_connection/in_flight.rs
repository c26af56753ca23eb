//! The in-flight commands of a connection: batches that are sent as one pipeline and answered in order.
//! In: calls → out: batches with their replies, and calls to repeat because a script was missing.
//! Uses a socket connection. Never: the meaning of replies; that is `command_connection.rs`.
//! Changed here: the size of a batch, how many may be in flight, and the `WAIT` after writes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::FutureExt as _;
use futures_util::future::{MaybeDone, maybe_done};
use redis::{Pipeline, RedisResult, Value};
use tokio::task::unconstrained;
use tokio::time::Instant;

use super::{QUEUE_MAX, Shared};
use crate::call::{Call, Caller};
use crate::dial::{BATCHES_MAX, Connection};
use crate::options::Wait;
use crate::script;
use crate::wire::RedisCommand;

/// The in-flight batches.
pub(super) struct InFlightBatches {
    connection: Connection,
    wait: Wait,
    shared: Arc<Shared>,
    /// Batches with their time of sending, oldest first. The Redis answers them in this order.
    pub(super) in_flight: VecDeque<(Instant, MaybeDone<PendingBatch>)>,
    /// Calls whose script was missing.
    pub(super) to_repeat: VecDeque<Call>,
}

type PendingBatch = Pin<Box<dyn Future<Output = Batch> + Send>>;

/// Commands that were sent together.
pub(super) struct Batch {
    pub(super) commands: Pipeline,
    /// One for each command.
    pub(super) sent: Vec<Sent>,
    /// A `WAIT` follows the commands.
    pub(super) waits: bool,
    pub(super) replies: RedisResult<Vec<Value>>,
    /// Released when the replies were taken.
    _held_bytes: HeldBytes,
}

/// Rest of a [`Call`] whose command was sent.
pub(super) struct Sent {
    pub(super) bytes: usize,
    pub(super) is_write: bool,
    pub(super) caller: Caller,
}

/// Counts bytes as held until it is dropped.
struct HeldBytes {
    shared: Arc<Shared>,
    bytes: usize,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.shared.held_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

impl InFlightBatches {
    pub(super) fn new(connection: Connection, wait: Wait, shared: Arc<Shared>) -> Self {
        Self { connection, wait, shared, in_flight: VecDeque::new(), to_repeat: VecDeque::new() }
    }

    pub(super) fn send(&mut self, calls: Vec<Call>) {
        let mut connection = self.connection.clone();
        let mut commands = Pipeline::with_capacity(calls.len());
        let mut sent = Vec::with_capacity(calls.len());
        let mut held_bytes_guard = HeldBytes { shared: Arc::clone(&self.shared), bytes: 0 };
        let mut waits = false;
        for Call { mut command, bytes, is_write, caller } in calls {
            held_bytes_guard.bytes += bytes;
            waits |= is_write && self.wait.replicas > 0;
            if caller.route.is_asking {
                let asking = Call::of(RedisCommand::of(&[b"ASKING"]));
                commands.add_command(asking.command);
                sent.push(Sent { bytes: 0, is_write: false, caller: asking.caller });
            }
            connection.append_replication_history(&mut command);
            commands.add_command(command);
            sent.push(Sent { bytes, is_write, caller });
        }
        if waits {
            let mut command = RedisCommand::new(3, 3 * NUMBER_BYTES);
            let timeout_ms = self.wait.timeout.as_millis().max(1) as u64; // 0 would mean no timeout
            command.text("WAIT").number(self.wait.replicas.into()).number(timeout_ms);
            commands.add_command(command.into_cmd());
        }
        let mut batch = maybe_done(Box::pin(unconstrained(async move {
            let replies = connection.send_packed_commands(&commands, 0, commands.len()).await;
            Batch { commands, sent, waits, replies, _held_bytes: held_bytes_guard }
        })) as PendingBatch);
        // The first poll hands the batch to the connection. It happens here so that no later batch overtakes this one.
        // The queue of the connection has room for all batches in flight, so this does not wait.
        let _ = (&mut batch).now_or_never();
        self.in_flight.push_back((Instant::now(), batch));
    }

    /// The oldest batch, once it is answered; `None` when nothing is in flight. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Batch> {
        let (_, batch) = self.in_flight.front_mut()?;
        batch.await;
        Pin::new(&mut self.in_flight.pop_front()?.1).take_output()
    }

    /// Returns the time at which the oldest batch was sent, unless it is answered.
    pub(super) fn oldest_unanswered_since(&mut self) -> Option<Instant> {
        let (since, batch) = self.in_flight.front_mut()?;
        batch.now_or_never().is_none().then_some(*since)
    }

    /// Whether more commands may be sent: not while some wait to be repeated, because those go first.
    pub(super) fn has_room(&self) -> bool {
        self.in_flight.len() < self.batches_max() && self.to_repeat.is_empty()
    }

    /// Most batches in flight. With `WAIT`, each may wait for replicas after the one before it.
    fn batches_max(&self) -> usize {
        if self.wait.replicas > 0 { WAITS_MAX } else { BATCHES_MAX }
    }

    /// Most commands in a batch. With `WAIT`, all queued commands wait for replicas once, not once for each part.
    pub(super) fn batch_max(&self) -> usize {
        if self.wait.replicas > 0 { QUEUE_MAX } else { BATCH_MAX }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.to_repeat.is_empty()
    }

    /// Once all batches are answered, loads the scripts and repeats the calls that needed them, in their order.
    pub(super) fn repeat(&mut self) {
        if self.to_repeat.is_empty() || !self.in_flight.is_empty() {
            return;
        }
        let to_repeat = std::mem::take(&mut self.to_repeat);
        let bytes = to_repeat.iter().map(|call| call.bytes).sum();
        self.shared.held_bytes.fetch_add(bytes, Relaxed); // their first batch released them
        self.send(script::loads().into_iter().map(Call::of).chain(to_repeat).collect());
    }
}

/// Commands in a batch.
const BATCH_MAX: usize = 1024;
/// Batches in flight when each waits for replicas. Commands queued behind two of them, which wait as well, are
/// answered before the connection is given up.
const WAITS_MAX: usize = 2;
/// Bytes for a number.
const NUMBER_BYTES: usize = 24;
