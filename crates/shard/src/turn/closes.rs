//! Connections that the server closes by itself: all in a stop, or some of them.
//! In: what to close, `now` → out: calls of the application, a few in each turn.
//! Uses `stop` for the pace. Never: chooses which ones of some; that is the application.
//! Changed here: what a turn does about such closes.

use std::time::Instant;

use super::Turn;
use crate::{application::Application, inbox::SendAway, stop::PacedCloses};

impl<A: Application> Turn<A> {
    /// Has the application choose connections, which are closed with those that are left from before.
    pub(super) fn send_away(&mut self, wanted: SendAway) {
        let now = self.out.now;
        let mut keys = self.application.departures(wanted, now);
        keys.extend(self.departing.take().into_iter().flat_map(PacedCloses::into_keys));
        self.departing = Some(PacedCloses::new(keys, wanted.spread, now));
    }

    /// Closes the connections that are due.
    pub(super) fn close_due(&mut self) {
        let mut due = Vec::new();
        if let Some(departing) = &mut self.departing {
            due = departing.due(self.out.now);
        }
        if let Some(stopping) = &mut self.stopping {
            due.extend(stopping.due(&self.out));
        }
        for key in due {
            self.application.shut_down(key, &mut self.out);
        }
        self.departing.take_if(|departing| departing.are_done());
    }

    /// The time of the next close.
    pub(super) fn next_close(&self) -> Option<Instant> {
        let has_closes = self.stopping.is_some() || self.departing.is_some();
        has_closes.then(|| PacedCloses::next_deadline(self.out.now))
    }
}
