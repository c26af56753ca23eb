//! Positions compared with the stream now and then (protocol §10), once per channel and shard for all of its subscribers.
//! In: a channel whose check is due, the time → out: the next check; the ends of subscriptions that lost their place.
//! Uses: the watch of the channel, the stream's top through the node. Never: clocks.
//! Change here: how often and how patiently positions are checked. What a lost position is lives in `hub/watch.rs`.

use std::time::{Duration, Instant};

use fanwire_protocol::{Disconnect, UnsubscribeCode};

use super::{Hub, Watch};
use crate::broker::Query;
use crate::outbox::Outbox;
use crate::session::ConnectionKey;

impl Hub {
    /// A channel that was active within `client.channel_position_check_delay` needs no check. Where the stream has more
    /// than was delivered, the rest may lie in the inbox; only if it has not come a second later, it never will.
    pub(super) fn check_positions(&mut self, channel: u32, now: Instant, out: &mut impl Outbox) {
        let moment = self.node.clock().moment(now);
        let delay = self.node.options().client.channel_position_check_delay;
        let Some(audience) = self.roster.subscribers_mut().get_mut(channel) else { return };
        let Some(watch) = audience.watch.as_deref_mut() else { return };
        if let Some(top) = watch.take_awaited() {
            let lost =
                self.positioned(channel, |watch, connection| watch.has_missed(connection, top));
            if let Some(watch) = self.watch_mut(channel) {
                watch.restart(top, moment);
            }
            self.roster.schedule_check(channel, moment.after(delay));
            return self.end_lost(&lost, out);
        }
        if moment < watch.sure_at.after(delay) {
            let due = watch.sure_at.after(delay);
            return self.roster.schedule_check(channel, due);
        }
        let name = audience.channel.clone();
        let retention = self.node.rules().resolve(&name).map(|namespace| namespace.retention());
        let read =
            retention.and_then(|retention| self.node.stretch(&name, Query::TOP, retention, now));
        let Ok(top) = read.map(|stretch| stretch.top) else {
            return self.roster.schedule_check(channel, moment.after(delay)); // the broker is away
        };
        let is_at = self.watch_mut(channel).is_none_or(|watch| watch.is_at(top, moment));
        let due = moment.after(if is_at { delay } else { PATIENCE });
        self.roster.schedule_check(channel, due);
        let lost = self.positioned(channel, |watch, connection| watch.is_beyond(connection, top));
        self.end_lost(&lost, out);
    }

    fn watch_mut(&mut self, channel: u32) -> Option<&mut Watch> {
        self.roster.subscribers_mut().get_mut(channel)?.watch.as_deref_mut()
    }

    /// The positioned subscribers of a channel that `are` so: connection and place of the subscription.
    fn positioned(
        &self,
        channel: u32,
        are: impl Fn(&Watch, u32) -> bool,
    ) -> Vec<(ConnectionKey, usize)> {
        let audience = self.roster.subscribers().audience(channel);
        let Some(watch) = audience.watch.as_deref() else { return Vec::new() };
        let place = |index, place: u32| {
            let session = self.roster.at(index)?;
            let positioned = session.subscriptions[place as usize].positioned;
            (positioned && are(watch, index)).then_some(place as usize)
        };
        (audience.list.iter())
            .filter_map(|one| {
                Some((self.roster.key_at(one.connection)?, place(one.connection, one.place)?))
            })
            .collect()
    }

    /// Ends subscriptions to one channel that lost their place: the client subscribes again and recovers (2500), or, when
    /// the server made the subscription, connects again (3010).
    pub(super) fn end_lost(&mut self, lost: &[(ConnectionKey, usize)], out: &mut impl Outbox) {
        for (key, place) in lost {
            self.counters().lost_positions.add(1);
            let session = self.roster.session(*key);
            if session.is_some_and(|session| session.subscriptions[*place].server_side) {
                self.disconnect(*key, &Disconnect::INSUFFICIENT_STATE, out);
            } else {
                self.end_subscription(*key, *place, UnsubscribeCode::INSUFFICIENT_STATE, out);
            }
        }
    }
}

/// How long publications may lie in the inbox of a shard before they count as lost.
const PATIENCE: Duration = Duration::from_secs(1);
