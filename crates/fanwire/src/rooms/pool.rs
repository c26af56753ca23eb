//! The threads that run the ticks of all rooms, each tick by the thread that is free when it is due.
//! In: rooms with the time of their next tick → out: calls of their ticks.
//! Uses one lock for the order of the rooms, which is not held during a tick. Never: what a tick does.
//! Changed here: which room is next, and how threads wait.

use std::{cmp::Ordering, collections::BinaryHeap, sync::Arc, thread, time::Instant};

use parking_lot::{Condvar, Mutex};

use super::running::RunningRoom;

/// A pool of threads. They end after their current tick when it is dropped.
pub(super) struct Pool {
    rooms: Arc<DueRooms>,
}

#[derive(Default)]
struct DueRooms {
    state: Mutex<PoolState>,
    changed: Condvar,
}

#[derive(Default)]
struct PoolState {
    /// The room that is due first is on top.
    waiting: BinaryHeap<Waiting>,
    has_ended: bool,
}

struct Waiting {
    due: Instant,
    room: Box<RunningRoom>,
}

impl Pool {
    pub(super) fn start(threads: usize) -> Self {
        let rooms = Arc::<DueRooms>::default();
        for _ in 0..threads {
            let rooms = Arc::clone(&rooms);
            let thread = thread::Builder::new().name("fanwire-room".to_owned());
            thread.spawn(move || rooms.run()).expect("the system has threads for rooms");
        }
        Self { rooms }
    }

    pub(super) fn add(&self, room: RunningRoom) {
        let room = Box::new(room);
        self.rooms.put(Waiting { due: room.due(), room });
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.rooms.state.lock().has_ended = true;
        self.rooms.changed.notify_all();
    }
}

impl DueRooms {
    fn put(&self, waiting: Waiting) {
        self.state.lock().waiting.push(waiting);
        self.changed.notify_one();
    }

    fn run(&self) {
        while let Some(mut room) = self.take_due() {
            if let Some(due) = room.run(Instant::now()) {
                self.put(Waiting { due, room });
            }
        }
    }

    /// Waits for the next room that is due; `None` at the end of the pool.
    fn take_due(&self) -> Option<Box<RunningRoom>> {
        let mut state = self.state.lock();
        loop {
            if state.has_ended {
                return None;
            }
            match state.waiting.peek().map(|first| first.due) {
                None => self.changed.wait(&mut state),
                Some(due) if due <= Instant::now() => {
                    return state.waiting.pop().map(|first| first.room);
                }
                Some(due) => drop(self.changed.wait_until(&mut state, due)),
            }
        }
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.due.cmp(&self.due)
    }
}
