//! Peers whose inflater did not understand a frame: their next connections get no references between messages.
//! In: closes with 1002 or 1007 of connections in context → out: yes or no for a peer that comes again.
//! Uses hashes of what a handshake shows, for a while; keeps no address and no header.
//! Changed here: how long and how many. Who is asked and what follows lives in `http::upgrade`.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, Hash, RandomState},
    sync::LazyLock,
    time::{Duration, Instant},
};

use fanwire_telemetry::LogThrottle;
use fanwire_ws::Compression;
use parking_lot::Mutex;

/// A peer as its handshake showed it. Peers behind one proxy with equal programs are one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer(u32);

/// The peers that failed lately.
#[derive(Debug, Default)]
pub struct DecodeFailures {
    peers: Mutex<VecDeque<(Instant, Peer)>>,
    log_throttle: LogThrottle,
}

impl Peer {
    pub fn of(shown: &impl Hash) -> Self {
        static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(HASHER.hash_one(shown) as u32)
    }
}

impl DecodeFailures {
    /// A connection ended because `peer` failed to decode; only one with references between messages says anything.
    pub fn note(&self, peer: Peer, compression: Compression, now: Instant) {
        if compression == compression.without_context() {
            return;
        }
        let mut peers = self.peers.lock();
        let is_known = peers.iter().any(|(_, other)| *other == peer);
        peers.retain(|(since, other)| {
            *other != peer && now.saturating_duration_since(*since) < MEMORY
        });
        if peers.len() == PEERS_MAX {
            peers.pop_front();
        }
        peers.push_back((now, peer));
        if !is_known && let Some(cases) = self.log_throttle.record("decode", now) {
            tracing::warn!(
                "a client closed with 1002 or 1007, as one does that fails to decode: for an hour its like get no compression context{cases}"
            );
        }
    }

    /// Whether `peer` failed in the last hour.
    pub fn knows(&self, peer: Peer, now: Instant) -> bool {
        self.peers
            .lock()
            .iter()
            .any(|(since, other)| *other == peer && now.saturating_duration_since(*since) < MEMORY)
    }
}

/// A client may be updated, or its proxy.
const MEMORY: Duration = Duration::from_secs(3600);
/// Bounds the search at every handshake.
const PEERS_MAX: usize = 256;

#[cfg(test)]
mod tests;
