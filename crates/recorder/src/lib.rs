//! The flight recorder of a shard: the last events of its connections, kept for an hour after their end.
//! In: connections with their events, Unix time → out: logs by user or client, within a bound of memory.
//! Uses: a map of logs, each with a ring of events. Pure. Never: a clock, a lock, a session.
//! Changed here: which logs are kept, and what a log has besides its events. How an event is stored is in `ring.rs`.

#![forbid(unsafe_code)]

pub mod log_file;
mod ring;

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashMap;

pub use ring::{FlightEvent, FlightEventKind, StoredEvent};
use ring::{RING_BYTES_MAX, Ring};

/// The logs of one shard's connections. Empty, it owns no memory.
#[derive(Debug, Default)]
pub struct FlightRecorder {
    /// Logs by number; a later connection has a higher one.
    logs: HashMap<u64, Box<FlightLog>>,
    /// Numbers of the logs that give way when memory is used up, the oldest connection first. Some logs may be gone.
    evictable: VecDeque<u64>,
    /// Numbers of the logs of open connections, by the index of the connection.
    open: HashMap<u32, u64>,
    /// Numbers of the logs of refused connects, the oldest first.
    refused: VecDeque<u64>,
    /// Logs of ended connections with the Unix time of the end in milliseconds, the first end first.
    ended: VecDeque<(u64, u64)>,
    last_number: u64,
    bytes: usize,
    /// Logs that stay whatever the memory.
    kept: usize,
    /// Logs that were dropped early because memory was used up.
    evicted: u64,
}

/// Facts about a connection that do not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// The client id.
    pub client: u128,
    pub user: Arc<str>,
    pub address: Option<IpAddr>,
    pub transport: &'static str,
}

/// The log of one connection.
#[derive(Debug)]
pub struct FlightLog {
    /// Index of the connection while it is open.
    connection: u32,
    facts: ConnectionFacts,
    /// Unix times in milliseconds; 0 for the end of an open connection.
    opened_ms: u64,
    ended_ms: u64,
    /// The last round trip of a ping, and the one that was stored last.
    ping_ms: Option<u32>,
    stored_ping_ms: Option<u32>,
    /// Since when the socket takes no bytes, and the most bytes that were queued since then.
    stall: Option<(u64, u64)>,
    refusals: u32,
    /// The log stays whatever the memory.
    is_kept: bool,
    ring: Ring,
}

impl FlightRecorder {
    /// Begins the log of a connection at Unix time `now_ms`. Drops the logs that have been over for an hour, and the
    /// logs of the oldest connections until all fit into `bytes_max`; 0 = nothing is recorded.
    pub fn begin(
        &mut self,
        connection: u32,
        facts: ConnectionFacts,
        now_ms: u64,
        bytes_max: usize,
    ) {
        self.close(connection, None, now_ms);
        self.forget_ended(now_ms);
        if bytes_max == 0 {
            return;
        }
        let log = FlightLog {
            connection,
            facts,
            opened_ms: now_ms,
            ended_ms: 0,
            ping_ms: None,
            stored_ping_ms: None,
            stall: None,
            refusals: 0,
            is_kept: false,
            ring: Ring::default(),
        };
        self.bytes += log.bytes();
        self.last_number += 1;
        self.logs.insert(self.last_number, Box::new(log));
        self.open.insert(connection, self.last_number);
        self.evictable.push_back(self.last_number);
        self.evict(bytes_max);
    }

    /// Begins the log of a client whose connect is refused, as [`begin`](Self::begin) does. Only the newest
    /// `REFUSED_LOGS_MAX` of them are kept, so that wrong tokens displace no logs of others.
    pub fn begin_refused(
        &mut self,
        connection: u32,
        facts: ConnectionFacts,
        now_ms: u64,
        bytes_max: usize,
    ) {
        if self.refused.len() >= REFUSED_LOGS_MAX
            && let Some(oldest) = self.refused.pop_front()
        {
            self.remove(oldest);
        }
        self.begin(connection, facts, now_ms, bytes_max);
        self.refused.push_back(self.last_number);
    }

    /// Keeps the log of an open connection whatever the memory, and begins one if there is none. Beyond `KEPT_LOGS_MAX` of
    /// them, logs are as any other.
    pub fn keep(&mut self, connection: u32, facts: impl FnOnce() -> ConnectionFacts, now_ms: u64) {
        if self.kept >= KEPT_LOGS_MAX {
            return;
        }
        if !self.open.contains_key(&connection) {
            self.begin(connection, facts(), now_ms, usize::MAX);
        }
        let log = self.open.get(&connection).and_then(|number| self.logs.get_mut(number));
        if let Some(log) = log.filter(|log| !log.is_kept) {
            log.is_kept = true;
            self.kept += 1;
        }
    }

    /// Sets the address of an open connection.
    pub fn set_address(&mut self, connection: u32, address: IpAddr) {
        self.with_log(connection, |log| log.facts.address = Some(address));
    }

    /// Stores an event of an open connection at Unix time `now_ms`. Nothing happens if the connection has no log.
    pub fn record(&mut self, connection: u32, event: FlightEvent<'_>, now_ms: u64) {
        self.with_log(connection, |log| log.push(event, now_ms));
    }

    /// Keeps the round trip of a ping, and stores the first one and each that differs by a factor of two.
    pub fn ping(&mut self, connection: u32, round_trip_ms: u32, now_ms: u64) {
        self.with_log(connection, |log| {
            log.ping_ms = Some(round_trip_ms);
            let usual = |stored: u32| {
                let least = stored / 2;
                let most = stored.saturating_mul(2).max(PING_NOISE_MS);
                (least..=most).contains(&round_trip_ms)
            };
            if !log.stored_ping_ms.is_some_and(usual) {
                log.stored_ping_ms = Some(round_trip_ms);
                let numbers = [round_trip_ms.into(), 0];
                log.push(
                    FlightEvent { numbers, ..FlightEvent::new(FlightEventKind::Ping, "") },
                    now_ms,
                );
            }
        });
    }

    /// Notes that a socket takes no bytes and how many are queued, or with 0 that it took all.
    pub fn stall(&mut self, connection: u32, queued_bytes: u64, now_ms: u64) {
        self.with_log(connection, |log| match (&mut log.stall, queued_bytes) {
            (None, 0) => {}
            (Some(_), 0) => log.end_stall(now_ms),
            (Some((_, most)), bytes) => *most = bytes.max(*most),
            (stall @ None, bytes) => *stall = Some((now_ms, bytes)),
        });
    }

    /// Ends the log of a connection, with its last event, and returns it. It is kept for an hour.
    pub fn end(
        &mut self,
        connection: u32,
        last: FlightEvent<'_>,
        now_ms: u64,
    ) -> Option<&FlightLog> {
        let number = self.open.get(&connection).copied();
        self.close(connection, Some(last), now_ms);
        self.logs.get(&number?).map(Box::as_ref)
    }

    fn close(&mut self, connection: u32, last: Option<FlightEvent<'_>>, now_ms: u64) {
        self.with_log(connection, |log| {
            log.end_stall(now_ms);
            last.into_iter().for_each(|last| log.push(last, now_ms));
            log.ended_ms = now_ms;
        });
        if let Some(number) = self.open.remove(&connection) {
            self.ended.push_back((now_ms, number));
        }
    }

    /// The log of an open connection.
    pub fn log(&self, connection: u32) -> Option<&FlightLog> {
        self.logs.get(self.open.get(&connection)?).map(Box::as_ref)
    }

    /// The logs of open connections, in no order.
    pub fn open_logs(&self) -> impl Iterator<Item = &FlightLog> {
        self.open.values().filter_map(|number| self.logs.get(number)).map(Box::as_ref)
    }

    /// The logs of refused connects in the last hour, the oldest first.
    pub fn refused_logs(&self, now_ms: u64) -> impl Iterator<Item = &FlightLog> {
        let is_recent = move |log: &&FlightLog| now_ms.saturating_sub(log.opened_ms) < KEPT_MS;
        let logs = self.refused.iter().filter_map(|number| self.logs.get(number));
        logs.map(Box::as_ref).filter(is_recent)
    }

    /// The logs of a user, of a client, or of both, newest first; `None` stands for any.
    pub fn find<'a>(
        &'a self,
        user: Option<&'a str>,
        client: Option<u128>,
        now_ms: u64,
    ) -> impl Iterator<Item = &'a FlightLog> {
        let is_wanted = |log: &FlightLog| {
            let FlightLog { facts, ended_ms, .. } = log;
            user.is_none_or(|user| user == &*facts.user)
                && client.is_none_or(|client| client == facts.client)
                && (*ended_ms == 0 || now_ms.saturating_sub(*ended_ms) < KEPT_MS)
        };
        let mut found: Vec<_> = self.logs.iter().filter(|(_, log)| is_wanted(log)).collect();
        found.sort_unstable_by_key(|(number, _)| Reverse(**number));
        found.into_iter().map(|(_, log)| log.as_ref())
    }

    /// Bytes of all logs.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many logs there are, and how many were dropped early because memory was used up.
    pub fn counts(&self) -> (usize, u64) {
        (self.logs.len(), self.evicted)
    }

    fn with_log(&mut self, connection: u32, change: impl FnOnce(&mut FlightLog)) {
        let Some(number) = self.open.get(&connection) else { return };
        let Some(log) = self.logs.get_mut(number) else { return };
        let before = log.ring.capacity();
        change(log);
        self.bytes += log.ring.capacity() - before;
    }

    fn forget_ended(&mut self, now_ms: u64) {
        while let Some((ended_ms, number)) = self.ended.front().copied()
            && now_ms.saturating_sub(ended_ms) >= KEPT_MS
        {
            self.ended.pop_front();
            self.remove(number);
        }
    }

    /// Drops the oldest logs. A log that grows may exceed the bound until the next connection begins, by its ring.
    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some(oldest) = self.evictable.pop_front()
        {
            if self.logs.get(&oldest).is_some_and(|log| !log.is_kept) {
                self.remove(oldest);
                self.evicted += 1;
            }
        }
        let numbers_max = 2 * self.logs.len() + GONE_MIN;
        if self.ended.len() > numbers_max {
            self.ended.retain(|(_, number)| self.logs.contains_key(number));
        }
        if self.evictable.len() > numbers_max {
            self.evictable.retain(|number| self.logs.contains_key(number));
        }
    }

    fn remove(&mut self, number: u64) {
        let Some(log) = self.logs.remove(&number) else { return };
        self.bytes -= log.bytes();
        self.kept -= usize::from(log.is_kept);
        if self.open.get(&log.connection) == Some(&number) {
            self.open.remove(&log.connection);
        }
    }
}

impl FlightLog {
    pub fn facts(&self) -> &ConnectionFacts {
        &self.facts
    }

    /// Unix times of the connect and of the end in milliseconds; 0 for the end of an open connection.
    pub fn times_ms(&self) -> (u64, u64) {
        (self.opened_ms, self.ended_ms)
    }

    /// The last round trip of a ping.
    pub fn ping_ms(&self) -> Option<u32> {
        self.ping_ms
    }

    /// Since when its socket takes no bytes, in milliseconds after the connect, and the most bytes that were queued since then.
    pub fn stall(&self) -> Option<(u64, u64)> {
        self.stall.map(|(since, most)| (since.saturating_sub(self.opened_ms), most))
    }

    /// How many commands were refused.
    pub fn refusals(&self) -> u32 {
        self.refusals
    }

    /// Its events, oldest first.
    pub fn events(&self) -> impl Iterator<Item = StoredEvent<'_>> {
        self.ring.iter()
    }

    fn push(&mut self, event: FlightEvent<'_>, now_ms: u64) {
        self.refusals += u32::from(event.kind == FlightEventKind::Refuse);
        self.ring.push(event, now_ms.saturating_sub(self.opened_ms));
    }

    fn end_stall(&mut self, now_ms: u64) {
        if let Some((since, most)) = self.stall.take() {
            let numbers = [now_ms.saturating_sub(since), most];
            self.push(
                FlightEvent { numbers, ..FlightEvent::new(FlightEventKind::Stall, "") },
                now_ms,
            );
        }
    }

    fn bytes(&self) -> usize {
        LOG_BYTES + self.facts.user.len() + self.ring.capacity()
    }
}

/// How long the log of an ended connection is kept.
pub const KEPT_MS: u64 = 3600 * 1000;

/// Logs that are kept whatever the memory.
const KEPT_LOGS_MAX: usize = 200;

/// Logs of refused connects.
const REFUSED_LOGS_MAX: usize = 256;

/// Round trips below this are equal.
const PING_NOISE_MS: u32 = 20;

/// A queue may have at least so many numbers whose logs are gone.
const GONE_MIN: usize = 1024;

/// A log without user and events: its box, entries in four tables, headers of heap blocks.
const LOG_BYTES: usize = size_of::<FlightLog>() + 128;

const _: () = assert!(LOG_BYTES + RING_BYTES_MAX < 1126, "1.1 KB for each connection");

#[cfg(test)]
mod tests;
