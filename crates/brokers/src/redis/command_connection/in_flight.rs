//! What a line has sent and nobody answered yet: commands in batches, which leave together and are answered in order.
//! In: calls → out: batches with their replies, and calls to be repeated because a script was not known.
//! Uses a connection. Never: takes replies apart; that is `line.rs`.
//! Change here: what leaves together, how much may be on its way, and what follows writes that wait for replicas.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::FutureExt as _;
use futures_util::future::{MaybeDone, maybe_done};
use redis::{Pipeline, RedisResult, Value};
use tokio::task::unconstrained;
use tokio::time::Instant;

use super::{Call, Caller, QUEUE_MAX, Shared};
use crate::redis::dial::{BATCHES_MAX, Connection};
use crate::redis::options::Wait;
use crate::redis::script;
use crate::redis::wire::RedisCommand;

/// What is on its way.
pub(super) struct InFlightBatches {
    connection: Connection,
    wait: Wait,
    shared: Arc<Shared>,
    /// Sent, and when, in this order, in which they are answered.
    pub(super) in_flight: VecDeque<(Instant, MaybeDone<PendingBatch>)>,
    /// To be sent again, because a script was not known.
    pub(super) to_repeat: VecDeque<Call>,
}

type PendingBatch = Pin<Box<dyn Future<Output = Batch> + Send>>;

/// Commands that left together.
pub(super) struct Batch {
    pub(super) commands: Pipeline,
    /// And how much they weigh, and whether they write.
    pub(super) callers: Vec<(usize, bool, Caller)>,
    /// A `WAIT` follows the commands.
    pub(super) waits: bool,
    pub(super) replies: RedisResult<Vec<Value>>,
    /// Until the replies were taken.
    _weight: HeldBytes,
}

/// Bytes that count until this is dropped.
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
        let mut callers = Vec::with_capacity(calls.len());
        let mut held_bytes_guard = HeldBytes { shared: Arc::clone(&self.shared), bytes: 0 };
        let mut waits = false;
        for Call { mut command, bytes, is_write, caller } in calls {
            held_bytes_guard.bytes += bytes;
            waits |= is_write && self.wait.replicas > 0;
            if caller.route.is_asking {
                let asking = Call::of(RedisCommand::of(&[b"ASKING"]));
                commands.add_command(asking.command);
                callers.push((0, false, asking.caller));
            }
            connection.append_replication_history(&mut command);
            commands.add_command(command);
            callers.push((bytes, is_write, caller));
        }
        if waits {
            let mut command = RedisCommand::new(3, 3 * NUMBER_BYTES);
            let timeout_ms = self.wait.timeout.as_millis().max(1) as u64; // 0 would be for ever
            command.text("WAIT").number(self.wait.replicas.into()).number(timeout_ms);
            commands.add_command(command.into_cmd());
        }
        let mut batch = maybe_done(Box::pin(unconstrained(async move {
            let replies = connection.send_packed_commands(&commands, 0, commands.len()).await;
            Batch { commands, callers, waits, replies, _weight: held_bytes_guard }
        })) as PendingBatch);
        // It is given to the connection when it is first looked at, which nothing may delay: the next one must not overtake
        // it. The queue of the connection is long enough for all that are on their way.
        let _ = (&mut batch).now_or_never();
        self.in_flight.push_back((Instant::now(), batch));
    }

    /// The oldest, once it is answered; `None` when nothing is on its way. Nothing is lost when this is dropped.
    pub(super) async fn next(&mut self) -> Option<Batch> {
        let (_, batch) = self.in_flight.front_mut()?;
        batch.await;
        Pin::new(&mut self.in_flight.pop_front()?.1).take_output()
    }

    /// When the oldest was sent, unless it is answered.
    pub(super) fn oldest_unanswered_since(&mut self) -> Option<Instant> {
        let (since, batch) = self.in_flight.front_mut()?;
        batch.now_or_never().is_none().then_some(*since)
    }

    /// Whether more commands may be sent: not while some wait to be repeated, which must not be overtaken.
    pub(super) fn has_room(&self) -> bool {
        self.in_flight.len() < self.batches_max() && self.to_repeat.is_empty()
    }

    /// Most batches on their way. Each may have to wait for replicas after the one before it.
    fn batches_max(&self) -> usize {
        if self.wait.replicas > 0 { WAITS_MAX } else { BATCHES_MAX }
    }

    /// Most commands that leave together. All that is there may have to wait for replicas once, not once for each part.
    pub(super) fn batch_max(&self) -> usize {
        if self.wait.replicas > 0 { QUEUE_MAX } else { BATCH_MAX }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.to_repeat.is_empty()
    }

    /// Once all that was sent is answered: loads the scripts and repeats what needed them, in its order.
    pub(super) fn repeat(&mut self) {
        if self.to_repeat.is_empty() || !self.in_flight.is_empty() {
            return;
        }
        let to_repeat = std::mem::take(&mut self.to_repeat);
        let bytes = to_repeat.iter().map(|call| call.bytes).sum();
        self.shared.held_bytes.fetch_add(bytes, Relaxed); // they gave it back with their first batch
        self.send(script::loads().map(Call::of).chain(to_repeat).collect());
    }
}

/// Commands that leave together.
const BATCH_MAX: usize = 1024;
/// Batches on their way when each waits for replicas: what was queued behind two of them, and waits itself, has an answer
/// before the connection that owes it is given up.
const WAITS_MAX: usize = 2;
/// Room for a number.
const NUMBER_BYTES: usize = 24;
