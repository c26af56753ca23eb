//! Subscribes to maps in progress: one for each connection and channel, from the first request until the client is live (protocol §27).
//! In: what a client was granted, how far it has read → out: the same at its next request.
//! Uses: values only. Never: registry, buffers; `map_release.rs` releases what a reservation holds.
//! Changed here: what is kept between two requests. What a request may do is in `map/paging.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hashbrown::HashMap;

use super::Visibility;
use crate::map::paging::Paging;
use crate::session::{Lifetime, SubscriptionGrant};
use crate::subscribers::DeltaState;

/// The subscribes in progress of one shard.
#[derive(Debug, Default)]
pub(crate) struct Reservations(HashMap<u32, Vec<Reservation>>);

/// A subscribe in progress. It counts as a channel of its session.
#[derive(Debug)]
pub(crate) struct Reservation {
    pub(crate) channel: Arc<str>,
    pub(crate) paging: Paging,
    pub(crate) grant: PagingGrant,
    pub(crate) held: HeldChanges,
}

/// The buffer of an ephemeral map, whose changes are in no stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldChanges {
    None,
    /// The channel counts the session as a subscriber; what the inbox of the shard had before is not read yet.
    Joined,
    /// Changes are buffered from the one with this number on.
    From(u64),
}

/// The rights that the client was granted at its first request.
#[derive(Debug)]
pub(crate) struct PagingGrant {
    pub(crate) terms: Option<Box<SubscriptionGrant>>,
    pub(crate) lifetime: Lifetime,
    pub(crate) visibility: Visibility,
    pub(crate) delta: Option<DeltaState>,
    /// Application data for the result.
    pub(crate) data: Bytes,
    /// Data of the client's request, for reports.
    pub(crate) requested_data: Bytes,
    /// `map.live_transition_max_publication_limit`.
    pub(crate) live_changes_max: usize,
    /// `client_publish_debounce_interval` in milliseconds.
    pub(crate) publish_debounce: u32,
    /// `map.subscribe_catch_up_timeout`.
    pub(crate) timeout: Duration,
}

impl Reservation {
    /// Whether the client took too long.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.paging.is_over(self.grant.timeout, now)
    }
}

impl Reservations {
    /// Subscribes in progress of a connection.
    pub(crate) fn count(&self, connection: u32) -> usize {
        self.0.get(&connection).map_or(0, Vec::len)
    }

    /// The channels of a connection that it is subscribing to.
    pub(crate) fn channels(&self, connection: u32) -> Vec<Arc<str>> {
        let own = self.0.get(&connection).into_iter().flatten();
        own.map(|reservation| Arc::clone(&reservation.channel)).collect()
    }

    pub(crate) fn has(&self, connection: u32, channel: &str) -> bool {
        let mut own = self.0.get(&connection).into_iter().flatten();
        own.any(|reservation| *reservation.channel == *channel)
    }

    pub(crate) fn find(&mut self, connection: u32, channel: &str) -> Option<&mut Reservation> {
        let own = self.0.get_mut(&connection)?;
        own.iter_mut().find(|reservation| *reservation.channel == *channel)
    }

    pub(crate) fn add(&mut self, connection: u32, reservation: Reservation) {
        self.0.entry(connection).or_default().push(reservation);
    }

    /// Removes the one for a channel.
    pub(crate) fn take(&mut self, connection: u32, channel: &str) -> Option<Reservation> {
        let own = self.0.get_mut(&connection)?;
        let place = own.iter().position(|reservation| *reservation.channel == *channel)?;
        let reservation = own.swap_remove(place);
        if own.is_empty() {
            self.0.remove(&connection);
        }
        Some(reservation)
    }
}
