//! Control commands until every node has them: one that reached too few nodes is repeated, and each is executed once.
//! In: how many nodes received a command, which nodes are alive, the time → out: what to repeat, answers; whether a number is new.
//! Uses: promises. Never: sends; that is `lib.rs`.
//! Changed here: how long a command is repeated, and how many received ones are remembered.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanwire_broker::{BrokerError, Promise};
use fanwire_protocol::ErrorCode;

/// Commands of this node that some other node may not have.
#[derive(Default)]
pub(super) struct UnacknowledgedCommands {
    given: BTreeMap<u64, SentCommand>,
    last: u64,
}

struct SentCommand {
    message: Bytes,
    /// How many nodes received the last attempt; `None` while unknown.
    reached: Option<usize>,
    /// Time at which its first repetition was due.
    since: Option<Instant>,
    promise: Promise<(), ErrorCode>,
}

/// The other nodes that are alive.
#[derive(Clone, Copy, Debug)]
pub(super) struct OtherNodes {
    /// How many are known.
    pub(super) count: usize,
    /// No other one can be missing, and each receives messages.
    pub(super) is_complete: bool,
}

/// A result to be delivered after the lock is released.
#[must_use]
pub(super) struct SettledPromise(Promise<(), ErrorCode>, Result<(), ErrorCode>);

impl SettledPromise {
    pub(super) fn keep(self) {
        self.0.keep(self.1);
    }
}

impl UnacknowledgedCommands {
    /// The next sequence number; the first one is 1.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The last sequence number.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The next sequence number is the one behind `last`.
    pub(super) fn go_on_after(&mut self, last: u64) {
        self.last = last;
    }

    /// A command is about to be sent for the first time.
    pub(super) fn begin(&mut self, number: u64, message: Bytes, promise: Promise<(), ErrorCode>) {
        self.given.insert(number, SentCommand { message, reached: None, since: None, promise });
    }

    /// A command reached some nodes, this one included if its subscription works, while `others` were alive. It succeeds when
    /// that is all of them, and fails when the bus did not take it. If too many commands wait, those that are known count.
    pub(super) fn reached(
        &mut self,
        number: u64,
        reached: Result<usize, BrokerError>,
        others: OtherNodes,
    ) -> Option<SettledPromise> {
        let is_full = self.given.len() > COMMANDS_MAX;
        let given = self.given.get_mut(&number)?;
        let result = match reached {
            Ok(count) if others.are_all_among(count) => Ok(()),
            Ok(count) if is_full && count > others.count => Ok(()),
            Ok(count) if !is_full => {
                given.reached = Some(count);
                return None;
            }
            _ => Err(ErrorCode::INTERNAL),
        };
        self.given.remove(&number).map(|given| SettledPromise(given.promise, result))
    }

    /// Commands to repeat, and those whose time is over: they succeed when all nodes have them that sent something
    /// since, counted by `spoken_since`, because the others are gone.
    pub(super) fn due(
        &mut self,
        now: Instant,
        spoken_since: impl Fn(Instant) -> OtherNodes,
    ) -> (Vec<(u64, Bytes)>, Vec<SettledPromise>) {
        let is_over = |_: &u64, given: &mut SentCommand| {
            given.reached.is_some() && *given.since.get_or_insert(now) + ORDER_TIME <= now
        };
        let over = self
            .given
            .extract_if(.., is_over)
            .map(|(_, given)| {
                let others = spoken_since(given.since.unwrap_or(now));
                let is_done = given.reached.is_some_and(|count| others.are_all_among(count));
                SettledPromise(
                    given.promise,
                    if is_done { Ok(()) } else { Err(ErrorCode::INTERNAL) },
                )
            })
            .collect();
        let again = self.given.iter_mut().filter_map(|(number, given)| {
            given.reached.take().map(|_| (*number, given.message.clone()))
        });
        (again.collect(), over)
    }
}

impl OtherNodes {
    /// Whether a command that reached `count` nodes has reached this one and all others.
    fn are_all_among(self, count: usize) -> bool {
        self.is_complete && count > self.count
    }
}

/// Which commands of another node were received: a window of its last [`COMMANDS_MAX`] (RFC 4303 §3.4.3).
pub(super) struct ReceivedCommands {
    last: u64,
    /// Commands that were received, by number modulo [`COMMANDS_MAX`].
    received: [bool; COMMANDS_MAX],
}

impl Default for ReceivedCommands {
    fn default() -> Self {
        Self { last: 0, received: [false; COMMANDS_MAX] }
    }
}

impl ReceivedCommands {
    /// The commands with these numbers, in ascending order.
    pub(super) fn of(numbers: Vec<u64>) -> Self {
        let mut received = Self::default();
        for number in numbers {
            received.is_new(number);
        }
        received
    }

    /// The numbers of the window that were received, in ascending order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        let window = COMMANDS_MAX as u64;
        let first = self.last.saturating_sub(window - 1).max(1);
        (first..=self.last).filter(move |number| self.received[(number % window) as usize])
    }

    /// Whether a command is new. One older than the window is not.
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

/// How long a command is repeated. Every live node sends something in this time.
pub(super) const ORDER_TIME: Duration = Duration::from_secs(6);
/// Commands that wait for nodes which did not receive them; further ones fail at once.
pub(super) const COMMANDS_MAX: usize = 1024;

#[cfg(test)]
mod tests;
