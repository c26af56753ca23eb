//! What has a share of the channels: a Redis that stands alone, or a Cluster, which shares its part among masters.
//! In: the place of a channel → out: its line, its feed, its clock.
//! Uses: servers, the map of a Cluster. Never: blocks for longer than a Cluster takes to change its map.
//! Change here: how a connection is found. Which store has a channel is `place::jump`, which slot `keys.rs`.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::MappedRwLockReadGuard;

use super::cluster::Cluster;
use super::feed::Feed;
use super::guide::Way;
use super::keys::Keys;
use super::line::Line;
use super::place;
use super::server::Server;
use super::slot;

/// One share of the channels.
pub(crate) enum Store {
    Single(Box<Server>),
    Cluster(Arc<Cluster>),
}

/// Where something belongs within a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// Chooses among the connections to one Redis.
    hash: u64,
    pub(crate) slot: u16,
}

impl Spot {
    /// Of a channel whose hash is known.
    pub(crate) fn of(channel: &str, hash: u64, keys: &Keys) -> Self {
        Self { hash, slot: keys.slot(channel) }
    }

    /// Of what nodes say to each other under this name: the first connection of where it is.
    pub(crate) fn of_nodes(name: &str) -> Self {
        Self { hash: 0, slot: slot::of(name.as_bytes()) }
    }

    pub(crate) fn lane(self, count: usize) -> usize {
        place::spread(self.hash, count)
    }
}

/// A line to send a command on.
pub(crate) enum LineAt<'a> {
    Single(&'a Line),
    Cluster(Line),
}

impl Deref for LineAt<'_> {
    type Target = Line;

    fn deref(&self) -> &Line {
        match self {
            Self::Single(line) => line,
            Self::Cluster(line) => line,
        }
    }
}

/// A feed that keeps its names while it is looked at.
pub(crate) enum FeedAt<'a> {
    Single(&'a Feed),
    Cluster(MappedRwLockReadGuard<'a, Feed>),
}

impl Deref for FeedAt<'_> {
    type Target = Feed;

    fn deref(&self) -> &Feed {
        match self {
            Self::Single(feed) => feed,
            Self::Cluster(feed) => feed,
        }
    }
}

impl Store {
    pub(crate) fn line(&self, spot: Spot) -> LineAt<'_> {
        match self {
            Self::Single(server) => LineAt::Single(&server.lines[spot.lane(server.lines.len())]),
            Self::Cluster(cluster) => {
                let server = cluster.server(spot.slot);
                let lane = spot.lane(server.lines.len());
                let way = Way { slot: spot.slot, lane, ..Way::default() };
                LineAt::Cluster(server.lines[lane].on(way))
            }
        }
    }

    pub(crate) fn feed(&self, spot: Spot) -> FeedAt<'_> {
        match self {
            Self::Single(server) => FeedAt::Single(&server.feeds[spot.lane(server.feeds.len())]),
            Self::Cluster(cluster) => FeedAt::Cluster(cluster.feed(spot)),
        }
    }

    /// Unix milliseconds at `now`, by the clock of the Redis.
    pub(crate) fn ms(&self, spot: Spot, now: Instant) -> u64 {
        match self {
            Self::Single(server) => server.clock.ms(now),
            Self::Cluster(cluster) => cluster.server(spot.slot).clock.ms(now),
        }
    }

    /// Asks each Redis for its time.
    pub(crate) fn keep_time(&self) {
        match self {
            Self::Single(server) => server.keep_time(),
            Self::Cluster(cluster) => cluster.servers().iter().for_each(|one| one.keep_time()),
        }
    }
}
