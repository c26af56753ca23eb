//! The pause between two turns: until a socket is ready, a message comes, or a timer is due.
//! In: the timers of the shard, work that is left → out: events, after at most that time.
//! Uses the shard's poller, and the kernel's `ppoll` for less than a millisecond.
//! Changed here: what ends a pause. What a turn does is in `turn`.

use std::{
    io,
    time::{Duration, Instant},
};

use mio::Events;
use rustix::event::{PollFd, PollFlags, Timespec};

use super::{Turn, frozen::FreezeState};
use crate::application::Application;

impl<A: Application> Turn<A> {
    /// Waits for events until the next timer. mio rounds up to a millisecond, so a shorter wait is the kernel's `ppoll`.
    pub(super) fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let mut timeout = self.poll_timeout();
        if let Some(short) = timeout
            && !short.is_zero()
            && short < Duration::from_millis(1)
        {
            let timespec = Timespec { tv_sec: 0, tv_nsec: short.subsec_nanos().into() };
            let mut poller = [PollFd::new(self.poll.registry(), PollFlags::IN)];
            rustix::event::poll(&mut poller, Some(&timespec))?;
            timeout = Some(Duration::ZERO);
        }
        self.poll.poll(events, timeout)
    }

    /// The longest sleep until the next timer; zero if work is left from the last turn.
    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        let has_pending_reads =
            !self.unread.is_empty() || !self.out.released.is_empty() || self.tasks.postponed() > 0;
        let FreezeState { is_paused, has_run_on, .. } = self.frozen;
        if has_run_on
            || has_pending_reads && !is_paused
            || !self.messages.is_empty()
            || !self.inboxes.own().fall_asleep()
        {
            return Some(Duration::ZERO);
        }
        let now = Instant::now();
        // What is due can wait, as it may publish.
        let deadline = if is_paused { None } else { self.next_deadline() };
        let sleep = deadline.map(|deadline| deadline.saturating_duration_since(now));
        if self.held.is_empty() || is_paused {
            sleep
        } else {
            Some(sleep.unwrap_or(HELD_CHECK_INTERVAL).min(HELD_CHECK_INTERVAL))
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let accepted = self.accepted.next_deadline();
        [self.application.next_deadline(), self.out.next_deadline(), self.next_close(), accepted]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Interval at which a shard with held connections checks whether the others still lag. A notification would cost every
/// turn.
const HELD_CHECK_INTERVAL: Duration = Duration::from_millis(1);
