//! Peers whose inflater failed on a frame: their next connections get no references between messages.
//! In: closes with 1002 or 1007 of connections in context → out: whether a peer failed recently.
//! Uses hashes of properties of the handshake, for a while; keeps no address and no header.
//! Changed here: how long and how many. The use of the result lives in `edge::clients::upgrade`.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, Hash, RandomState},
    sync::LazyLock,
    time::{Duration, Instant},
};

use fanwire_telemetry::LogThrottle;
use fanwire_ws::Compression;
use parking_lot::Mutex;

/// A hash of a peer's handshake. Peers behind one proxy with equal programs are one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peer(u32);

/// The peers that failed recently.
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
    /// Records that `peer` failed to decode. Ignored for a connection without references between messages.
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
        if !is_known && let Some(repeats) = self.log_throttle.record("decode", now) {
            tracing::warn!(
                "a client closed with 1002 or 1007, as one does that fails to decode: for an hour its like get no compression context{repeats}"
            );
        }
    }

    /// Whether `peer` failed in the last hour.
    pub fn failed_recently(&self, peer: Peer, now: Instant) -> bool {
        self.peers
            .lock()
            .iter()
            .any(|(since, other)| *other == peer && now.saturating_duration_since(*since) < MEMORY)
    }
}

/// A client or its proxy may be updated, so an entry ends after this time.
const MEMORY: Duration = Duration::from_secs(3600);
/// Limits the search at every handshake.
const PEERS_MAX: usize = 256;

#[cfg(test)]
mod tests;
