//! The gate of a PUB/SUB connection: in a takeover the old program delivers messages up to a mark, the new one those behind it.
//! In: messages, the mark → out: whether a message passes; the time at which the mark has come.
//! Uses a lock. Never: sockets, the meaning of a message.
//! Changed here: what passes. The mark is published by `takeover.rs`.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// A message under a name of its own, which all connections of both programs get.
#[derive(Clone, PartialEq)]
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// Open, except in a takeover.
#[derive(Default)]
pub(super) struct Gate {
    /// A takeover goes on.
    is_watched: AtomicBool,
    /// The mark has come.
    is_shut: AtomicBool,
    state: Mutex<GateState>,
    shut: Condvar,
}

#[derive(Default)]
struct GateState {
    /// What comes before the mark is dropped, because the other program delivers it.
    drops: bool,
    mark: Option<Mark>,
}

impl Gate {
    /// Drops all messages up to the mark.
    pub(super) fn drop_until_mark(&self) {
        self.state.lock().drops = true;
        self.is_watched.store(true, SeqCst);
    }

    /// Shuts the gate when this mark comes.
    pub(super) fn shut_at(&self, mark: Mark) {
        self.state.lock().mark = Some(mark);
        self.is_watched.store(true, SeqCst);
    }

    /// Waits until the mark has come. Returns whether it has. Blocks.
    pub(super) fn wait_until_shut(&self, deadline: Instant) -> bool {
        let mut state = self.state.lock();
        let is_open = |_: &mut GateState| !self.is_shut.load(SeqCst);
        !self.shut.wait_while_until(&mut state, is_open, deadline).timed_out()
    }

    /// Lets all messages pass. Returns the mark at which it was to be shut.
    pub(super) fn open(&self) -> Option<Mark> {
        let mark = std::mem::take(&mut *self.state.lock()).mark;
        self.is_watched.store(false, SeqCst);
        self.is_shut.store(false, SeqCst);
        mark
    }

    /// Whether messages are to be taken one by one, so that none is taken with the mark.
    pub(super) fn is_watched(&self) -> bool {
        self.is_watched.load(SeqCst)
    }

    /// Whether no message is to be taken.
    pub(super) fn is_shut(&self) -> bool {
        self.is_shut.load(SeqCst)
    }

    /// Whether a message is for this program. The mark shuts the gate.
    pub(super) fn passes(&self, name: &[u8], message: &[u8]) -> bool {
        if !self.is_watched() {
            return true;
        }
        let state = self.state.lock();
        let is_mark =
            |mark: &Mark| mark.name.as_bytes() == name && mark.value.as_bytes() == message;
        if state.mark.as_ref().is_some_and(is_mark) {
            self.is_shut.store(true, SeqCst);
            self.shut.notify_all();
        }
        !state.drops && !self.is_shut()
    }
}

#[cfg(test)]
mod tests;
