//! Position checks (protocol §10): one read of the stream's top for all subscribers of a channel.
//! In: a channel whose check is due; the top of its stream, as a notice → out: that notice, to every shard with
//! subscribers; the ends of subscriptions that lost their position.
//! Uses: the position tracker of the channel, the stream's top through the node. Never: clocks.
//! Change here: when positions are checked. `subscribers/position_tracker.rs` decides which position is lost.

use std::time::{Duration, Instant};

use fanwire_broker::Position;
use fanwire_protocol::{Disconnect, UnsubscribeCode};

use super::Hub;
use crate::broadcast::Broadcast;
use crate::clock::Moment;
use crate::outbox::Outbox;
use crate::session::ConnectionKey;
use crate::subscribers::PositionCheck;
use crate::subscribers::{PositionStep, PositionTracker, PossibleGap};

impl Hub {
    /// A channel that was active within `client.channel_position_check_delay` needs no check. Otherwise the node
    /// reads the top of its stream and sends it to every shard with subscribers: the notice arrives behind all
    /// publications up to that top, so a subscriber that lacks one of them then will never get it.
    ///
    /// The first shard whose check is due does this for the others, whose checks are postponed when the notice
    /// arrives. The same timer ends a possible gap: publications in flight had their time, and a subscriber that
    /// still lacks one lost its position.
    pub(super) fn check_positions(&mut self, channel: u32, now: Instant, out: &mut impl Outbox) {
        let moment = self.node.clock().moment(now);
        let Some(delay) = self.session_table.check_delay(&self.node) else { return };
        if self.session_table.subscribers().get(channel).is_none() {
            return;
        }
        let Some(position_tracker) = self.position_tracker_mut(channel) else { return };
        let over =
            position_tracker.possible_gap.take_if(|possible_gap| possible_gap.until <= moment);
        let mut due = match over {
            _ if position_tracker.may_have_gap => moment,
            Some(_) => moment.after(delay),
            None => position_tracker.sure_at.after(delay),
        };
        if due <= moment {
            position_tracker.may_have_gap = false;
            due = moment.after(delay);
            let known = position_tracker.furthest();
            let channel_subscribers = self.session_table.subscribers().channel_subscribers(channel);
            self.node.channels().send_position(&channel_subscribers.channel, known, now);
        }
        self.session_table.schedule_check(channel, due);
        let lost = over.map(|PossibleGap { top, .. }| self.lacking(channel, top));
        self.end_lost(&lost.unwrap_or_default(), out);
    }

    /// A publication that took longer than `client.channel_position_max_time_lag` ends the positioned subscriptions
    /// of its channel that do not have it; they recover from the stream. Subscribers without a position receive it
    /// late.
    ///
    /// Subscriptions that have it recovered it just now; ending them as well would end them again for each late
    /// publication.
    pub(super) fn end_lagging(&mut self, late: &Broadcast, now: Instant, out: &mut impl Outbox) {
        let lag_max = self.node.options().client.channel_position_max_time_lag;
        if lag_max.is_zero() || late.position().offset == 0 {
            return;
        }
        if late.age(self.node.clock().unix_ms(now)).is_none_or(|age| age <= lag_max) {
            return;
        }
        if let Some(channel) = self.session_table.subscribers().find(late.channel()) {
            let position = late.position();
            let lost = self.positioned(channel, |position_tracker, connection| {
                position_tracker.step(connection, position) != PositionStep::Known
            });
            self.end_lost(&lost, out);
        }
    }

    /// The top of the stream has arrived.
    pub(super) fn compare_positions(
        &mut self,
        channel: &str,
        check: PositionCheck,
        now: Moment,
        out: &mut impl Outbox,
    ) {
        let PositionCheck { top, is_in_order, has_lost_end } = check;
        let Some(channel) = self.session_table.subscribers().find(channel) else { return };
        // No publication in flight leads to another epoch, or backwards.
        let lost = self.positioned(channel, |position_tracker, connection| {
            position_tracker.is_elsewhere(connection, top)
                || is_in_order && position_tracker.lacks(connection, top)
                || has_lost_end && position_tracker.is_beyond(connection, top)
        });
        let may_come = !is_in_order && !self.lacking(channel, top).is_empty();
        let Some(position_tracker) = self.position_tracker_mut(channel) else { return };
        if may_come {
            self.suspect(channel, top, now);
        } else if !position_tracker.confirm(check, now) {
            self.session_table.schedule_check(channel, now); // Something may have been published since: the next check shows it.
        }
        self.end_lost(&lost, out);
    }

    /// Some subscribers lack publications that may be in flight. An earlier possible gap keeps its time as long as a
    /// subscriber lacks it; then the top is read again.
    fn suspect(&mut self, channel: u32, top: Position, now: Moment) {
        let position_tracker = self
            .session_table
            .subscribers()
            .channel_subscribers(channel)
            .position_tracker
            .as_deref();
        let before = position_tracker.and_then(|position_tracker| position_tracker.possible_gap);
        let before = before.filter(|before| !self.lacking(channel, before.top).is_empty());
        let Some(position_tracker) = self.position_tracker_mut(channel) else { return };
        if let Some(before) = before {
            position_tracker.may_have_gap |= before.top != top;
            return;
        }
        let until = now.after(SUSPICION);
        position_tracker.possible_gap = Some(PossibleGap { top, until });
        if !position_tracker.may_have_gap {
            self.session_table.schedule_check(channel, until); // else it is looked at sooner
        }
    }

    fn position_tracker_mut(&mut self, channel: u32) -> Option<&mut PositionTracker> {
        self.session_table
            .subscribers_mut()
            .channel_subscribers_mut(channel)
            .position_tracker
            .as_deref_mut()
    }

    /// The positioned subscribers of a channel that lack a publication up to `top`.
    fn lacking(&self, channel: u32, top: Position) -> Vec<(ConnectionKey, usize)> {
        self.positioned(channel, |position_tracker, connection| {
            position_tracker.lacks(connection, top)
        })
    }

    /// The positioned subscribers of a channel for which `are` holds: connection and place of the subscription.
    fn positioned(
        &self,
        channel: u32,
        are: impl Fn(&PositionTracker, u32) -> bool,
    ) -> Vec<(ConnectionKey, usize)> {
        let channel_subscribers = self.session_table.subscribers().channel_subscribers(channel);
        let Some(position_tracker) = channel_subscribers.position_tracker.as_deref() else {
            return Vec::new();
        };
        let place = |index, place: u32| {
            let session = self.session_table.at(index)?;
            let positioned = session.subscriptions[place as usize].positioned;
            (positioned && are(position_tracker, index)).then_some(place as usize)
        };
        (channel_subscribers.list.iter())
            .filter_map(|one| {
                Some((
                    self.session_table.key_at(one.connection)?,
                    place(one.connection, one.place())?,
                ))
            })
            .collect()
    }

    /// Ends subscriptions that lost their position: the client subscribes again and recovers (2500), or, for
    /// server-side subscriptions, reconnects (3010).
    pub(super) fn end_lost(&mut self, lost: &[(ConnectionKey, usize)], out: &mut impl Outbox) {
        for (key, place) in lost {
            self.counters().lost_positions.add(1);
            let session = self.session_table.session(*key);
            if session.is_some_and(|session| session.subscriptions[*place].server_side) {
                self.disconnect(*key, &Disconnect::INSUFFICIENT_STATE, out);
            } else {
                self.end_subscription(*key, *place, UnsubscribeCode::INSUFFICIENT_STATE, out);
            }
        }
    }
}

/// How long a publication may be in flight after the broker reported it.
const SUSPICION: Duration = Duration::from_secs(5);
