//! Accepted sockets and the tasks of connections in the turns of a shard.
//! In: readiness of their sockets → out: connections and tasks that begin, tasks that go on.
//! Uses the accepted sockets and the tasks; never a byte of a request.
//! Changed here: when they have their share of a turn. What they do lives in `accepted` and `socket_tasks`.

use std::time::Instant;

use mio::{Registry, event::Event};

use super::{Application, READS_TIME, Turn};
use crate::accepted::Decided;

impl<A: Application> Turn<A> {
    /// Looks at the bytes of an accepted socket, whose request may begin a connection.
    pub(super) fn read_request(&mut self, slot: usize) {
        let registry = self.poll.registry();
        let now = self.out.now;
        match self.accepted.receive(slot, &mut self.buffer, registry, now) {
            // Bytes behind the request raise an event under the new token.
            Some(Decided::Connection(socket, connection)) => {
                self.begin(socket, None, *connection, Registry::reregister);
            }
            Some(Decided::Served(socket, handler)) => {
                // Fails only if the kernel has no memory for one more watch. Then the socket is closed.
                let _ = self.tasks.start(socket, registry, |socket| handler.serve(socket));
            }
            None => {}
        }
    }

    /// Continues with a task after an event of its socket, or leaves it for the next turn.
    pub(super) fn run_task(&mut self, slot: usize, event: &Event, until: Instant) {
        self.tasks.note(slot, event);
        if Instant::now() < until && !self.frozen.is_paused {
            self.tasks.run(slot);
        } else {
            self.tasks.run_later(slot);
        }
    }

    /// Continues with the tasks that had their share of an earlier turn. They come after everything is written, so that a task
    /// with much input delays others by one share.
    pub(super) fn run_postponed_tasks(&mut self) {
        let count = self.tasks.postponed();
        if count == 0 {
            return;
        }
        let until = Instant::now() + READS_TIME;
        for _ in 0..count {
            self.tasks.run_postponed();
            if Instant::now() >= until {
                return;
            }
        }
    }
}
