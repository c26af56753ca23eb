//! UnacknowledgedCommands until every node has them: one that reached too few is given again, and nobody obeys one twice.
//! In: how many heard an order, who is there, the time → out: what to give again, answers; whether a number is new.
//! Uses: promises. Never: sends; that is `cluster.rs`.
//! Change here: how long is tried, and what is remembered of what others gave.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{BrokerError, Promise};
use fanwire_protocol::ErrorCode;

/// The unacknowledged of this node that some other node may not have.
#[derive(Default)]
pub(super) struct UnacknowledgedCommands {
    given: BTreeMap<u64, SentCommand>,
    last: u64,
}

struct SentCommand {
    message: Bytes,
    /// To how many nodes it went the last time; `None` while that is not known.
    reached: Option<usize>,
    /// When it was to be given again first.
    since: Option<Instant>,
    promise: Promise<(), ErrorCode>,
}

/// An answer that is to be given without a lock.
#[must_use]
pub(super) struct SettledPromise(Promise<(), ErrorCode>, Result<(), ErrorCode>);

impl SettledPromise {
    pub(super) fn keep(self) {
        self.0.keep(self.1);
    }
}

impl UnacknowledgedCommands {
    /// The number of the next order; the first one is 1.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// An order is about to be given for the first time.
    pub(super) fn begin(&mut self, number: u64, message: Bytes, promise: Promise<(), ErrorCode>) {
        self.given.insert(number, SentCommand { message, reached: None, since: None, promise });
    }

    /// It went to so many nodes, this one among them if it hears itself, while `others` were there beside it. It is done when
    /// these are all, and has failed when nobody took it, or too many wait already.
    pub(super) fn reached(
        &mut self,
        number: u64,
        reached: Result<usize, BrokerError>,
        others: usize,
    ) -> Option<SettledPromise> {
        let is_full = self.given.len() > COMMANDS_MAX;
        let given = self.given.get_mut(&number)?;
        let result = match reached {
            Ok(count) if is_enough(count, others) => Ok(()),
            Ok(count) if !is_full => {
                given.reached = Some(count);
                return None;
            }
            _ => Err(ErrorCode::INTERNAL),
        };
        self.given.remove(&number).map(|given| SettledPromise(given.promise, result))
    }

    /// Those that are to be given again, and those for which that is over: they are done when all nodes have them that said
    /// something meanwhile, as `spoken_since` counts them, because the others are gone.
    pub(super) fn due(
        &mut self,
        now: Instant,
        spoken_since: impl Fn(Instant) -> usize,
    ) -> (Vec<(u64, Bytes)>, Vec<SettledPromise>) {
        let is_over = |_: &u64, given: &mut SentCommand| {
            given.reached.is_some() && *given.since.get_or_insert(now) + ORDER_TIME <= now
        };
        let over = self.given.extract_if(.., is_over).map(|(_, given)| {
            let others = given.since.map_or(0, &spoken_since);
            let is_done = given.reached.is_some_and(|count| is_enough(count, others));
            SettledPromise(given.promise, if is_done { Ok(()) } else { Err(ErrorCode::INTERNAL) })
        });
        let over = over.collect();
        let again = self.given.iter_mut().filter_map(|(number, given)| {
            given.reached.take().map(|_| (*number, given.message.clone()))
        });
        (again.collect(), over)
    }
}

/// Whether an order that went to `count` nodes has reached this one and the `others`.
fn is_enough(count: usize, others: usize) -> bool {
    others == 0 || count > others
}

/// Which unacknowledged of another node were heard: of its last [`COMMANDS_MAX`], as RFC 4303 §3.4.3 remembers packets.
pub(super) struct ReceivedCommands {
    last: u64,
    /// By number, modulo their count.
    received: [bool; COMMANDS_MAX],
}

impl Default for ReceivedCommands {
    fn default() -> Self {
        Self { last: 0, received: [false; COMMANDS_MAX] }
    }
}

impl ReceivedCommands {
    /// Whether an order is heard for the first time. One older than all that are remembered is not.
    pub(super) fn is_new(&mut self, number: u64) -> bool {
        let place = |number: u64| (number % COMMANDS_MAX as u64) as usize;
        if number > self.last {
            let skipped = (self.last + 1..number).rev().take(COMMANDS_MAX - 1);
            skipped.for_each(|number| self.received[place(number)] = false);
            self.last = number;
        } else if self.last - number >= COMMANDS_MAX as u64 || self.received[place(number)] {
            return false;
        }
        self.received[place(number)] = true;
        true
    }
}

/// How long an order is given again. Every node that is there says something in this time.
pub(super) const ORDER_TIME: Duration = Duration::from_secs(6);
/// UnacknowledgedCommands that wait for nodes which did not hear them; more fail at once.
pub(super) const COMMANDS_MAX: usize = 1024;

#[cfg(test)]
mod tests;
