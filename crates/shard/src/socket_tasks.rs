//! Connections that tasks serve on a shard: futures of another server, which the shard polls on its own thread.
//! In: readiness of sockets, wake-ups from any thread → out: polls, then the bytes that a task has written.
//! Uses the shard's poller; never knows what a task reads and writes.
//! Changed here: when a task is polled. Its socket lives in `shard_socket`, what it serves in the server.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{
            AtomicU8,
            Ordering::{AcqRel, Acquire},
        },
    },
    task::{Context, Wake, Waker},
};

use mio::{Interest, Registry, Token, event::Event, net::TcpStream};
use slab::Slab;

use super::{shard_socket::ShardSocket, wake_ups::wake_shards_after};

/// Serves a connection to its end. It must not block.
pub type SocketTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Has the shard call [`SocketTasks::wake`] with these arguments. Called from any thread.
pub(super) type SendWake = Arc<dyn Fn(usize, u64) + Send + Sync>;

/// The tasks of a shard.
pub(super) struct SocketTasks {
    tasks: Slab<RunningTask>,
    /// Tasks that can go on in the next turn; the longest wait first.
    postponed: VecDeque<usize>,
    started: u64,
    send_wake: SendWake,
}

struct RunningTask {
    task: SocketTask,
    socket: ShardSocket,
    wake: Arc<TaskWake>,
    waker: Waker,
    is_postponed: bool,
}

/// The result of some polls of a task.
enum Polled {
    Ended,
    Waits,
    /// It can go on in the next turn.
    Postponed,
}

impl SocketTasks {
    pub(super) fn new(send_wake: SendWake) -> Self {
        Self { tasks: Slab::new(), postponed: VecDeque::new(), started: 0, send_wake }
    }

    /// The slot of an event with this token, if it is one of a task.
    pub(super) fn slot(token: Token) -> Option<usize> {
        token.0.checked_sub(FIRST_TOKEN)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Starts the task that `serve` makes for a registered socket.
    ///
    /// # Errors
    /// The kernel has no memory for the watch. Then the socket is closed.
    pub(super) fn start(
        &mut self,
        mut socket: TcpStream,
        registry: &Registry,
        serve: impl FnOnce(ShardSocket) -> SocketTask,
    ) -> io::Result<()> {
        let vacant = self.tasks.vacant_entry();
        let slot = vacant.key();
        // What has arrived before raises an event again.
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.reregister(&mut socket, Token(FIRST_TOKEN + slot), interest)?;
        self.started += 1;
        let socket = ShardSocket::new(socket);
        let task = serve(socket.clone());
        let wake = Arc::new(TaskWake {
            state: AtomicU8::new(WAITS),
            slot,
            number: self.started,
            send_wake: Arc::clone(&self.send_wake),
        });
        let waker = Waker::from(Arc::clone(&wake));
        vacant.insert(RunningTask { task, socket, wake, waker, is_postponed: false });
        self.run(slot);
        Ok(())
    }

    /// Notes what an event says of a socket.
    pub(super) fn note(&mut self, slot: usize, event: &Event) {
        if let Some(running) = self.tasks.get(slot) {
            let is_ended = event.is_read_closed() || event.is_error();
            running.socket.note(event.is_readable(), is_ended);
        }
    }

    /// Continues with the task in a slot, if it still has this number.
    pub(super) fn wake(&mut self, slot: usize, number: u64) {
        if self.tasks.get(slot).is_some_and(|running| running.wake.number == number) {
            self.run(slot);
        }
    }

    /// Polls the task in a slot, which reads once at most, then sends what it has written. One that was left for this turn waits
    /// for its place.
    pub(super) fn run(&mut self, slot: usize) {
        let Some(running) = self.tasks.get_mut(slot) else { return };
        if running.is_postponed {
            return;
        }
        let polled = wake_shards_after(|| running.poll());
        let is_sent = running.socket.send().is_ok();
        // An error of the socket is that of a peer that has left.
        if !is_sent || matches!(polled, Polled::Ended) {
            self.tasks.remove(slot);
        } else if matches!(polled, Polled::Postponed) {
            self.run_later(slot);
        }
    }

    /// Leaves the task in a slot for the next turn.
    pub(super) fn run_later(&mut self, slot: usize) {
        if let Some(running) = self.tasks.get_mut(slot)
            && !std::mem::replace(&mut running.is_postponed, true)
        {
            self.postponed.push_back(slot);
        }
    }

    /// How many tasks were left for the next turn.
    pub(super) fn postponed(&self) -> usize {
        self.postponed.len()
    }

    /// Continues with the task that was left for the longest time.
    pub(super) fn run_postponed(&mut self) {
        let Some(slot) = self.postponed.pop_front() else { return };
        if let Some(running) = self.tasks.get_mut(slot) {
            running.is_postponed = false;
            self.run(slot);
        }
    }
}

impl RunningTask {
    /// Polls the task as long as it wakes itself, as one does between parts of its work.
    fn poll(&mut self) -> Polled {
        self.socket.begin_turn();
        let mut context = Context::from_waker(&self.waker);
        for _ in 0..POLLS_PER_TURN {
            self.wake.begin_poll();
            if self.task.as_mut().poll(&mut context).is_ready() {
                return Polled::Ended;
            }
            if self.wake.end_poll() {
                return if self.socket.may_read_on() { Polled::Postponed } else { Polled::Waits };
            }
        }
        Polled::Postponed
    }
}

/// Wakes a task from any thread.
struct TaskWake {
    /// [`WAITS`], [`IS_POLLED`] or [`IS_WOKEN`].
    state: AtomicU8,
    slot: usize,
    number: u64,
    send_wake: SendWake,
}

const WAITS: u8 = 0;
const IS_POLLED: u8 = 1;
/// During a poll, or by a message that the shard has not served.
const IS_WOKEN: u8 = 2;

impl TaskWake {
    fn begin_poll(&self) {
        self.state.swap(IS_POLLED, AcqRel);
    }

    /// Whether the task waits. It does not if it was woken during the poll.
    fn end_poll(&self) -> bool {
        self.state.compare_exchange(IS_POLLED, WAITS, AcqRel, Acquire).is_ok()
    }
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(IS_WOKEN, AcqRel) == WAITS {
            (self.send_wake)(self.slot, self.number);
        }
    }
}

/// Those of accepted sockets are below, that of the waker is above.
const FIRST_TOKEN: usize = usize::MAX / 4 * 3;

/// A task that wakes itself more often in one turn goes on in the next one.
const POLLS_PER_TURN: usize = 64;

#[cfg(test)]
mod tests;
