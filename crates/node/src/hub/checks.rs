//! Positions compared with the stream now and then (protocol §10), with one look for all subscribers of a channel.
//! In: a channel whose check is due; the top of its stream, as a letter → out: that letter, to every shard with
//! subscribers; the ends of subscriptions that lost their place.
//! Uses: the watch of the channel, the stream's top through the node. Never: clocks.
//! Change here: when positions are checked. What a lost position is lives in `subscribers/watch.rs`.

use std::time::{Duration, Instant};

use fanwire_broker::Position;
use fanwire_protocol::{Disconnect, UnsubscribeCode};

use super::Hub;
use crate::broadcast::Broadcast;
use crate::clock::Moment;
use crate::outbox::Outbox;
use crate::session::ConnectionKey;
use crate::subscribers::Look;
use crate::subscribers::{Step, Suspicion, Watch};

impl Hub {
    /// A channel that was active within `client.channel_position_check_delay` needs no check. Otherwise the node looks at
    /// the top of its stream and writes it to every shard that listens: the letter lies in the inboxes behind all
    /// publications up to that top, so whoever has not got them when it comes never will.
    ///
    /// The first shard whose check is due does this for the others, whose checks are put off when the letter comes. The same
    /// timer ends a suspicion: what was on its way has had its time, and who still lacks it lost its place.
    pub(super) fn check_positions(&mut self, channel: u32, now: Instant, out: &mut impl Outbox) {
        let moment = self.node.clock().moment(now);
        let Some(delay) = self.roster.check_delay(&self.node) else { return };
        if self.roster.subscribers().get(channel).is_none() {
            return;
        }
        let Some(watch) = self.watch_mut(channel) else { return };
        let over = watch.suspicion.take_if(|suspicion| suspicion.until <= moment);
        let mut due = match over {
            _ if watch.is_doubted => moment,
            Some(_) => moment.after(delay),
            None => watch.sure_at.after(delay),
        };
        if due <= moment {
            watch.is_doubted = false;
            due = moment.after(delay);
            let known = watch.furthest();
            let audience = self.roster.subscribers().audience(channel);
            self.node.tell_position(&audience.channel, known, now);
        }
        self.roster.schedule_check(channel, due);
        let lost = over.map(|Suspicion { top, .. }| self.lacking(channel, top));
        self.end_lost(&lost.unwrap_or_default(), out);
    }

    /// A publication that was on its way for longer than `client.channel_position_max_time_lag` ends the positioned
    /// subscriptions of its channel that do not know it, which recover from the stream. Whoever has no position gets it late.
    ///
    /// Those that know it have just recovered it: ending them, too, would end them again for each one that is as late.
    pub(super) fn end_outrun(&mut self, late: &Broadcast, now: Instant, out: &mut impl Outbox) {
        let lag_max = self.node.options().client.channel_position_max_time_lag;
        if lag_max.is_zero() || late.position().offset == 0 {
            return;
        }
        if late.age(self.node.clock().unix_ms(now)).is_none_or(|age| age <= lag_max) {
            return;
        }
        if let Some(channel) = self.roster.subscribers().find(late.channel()) {
            let position = late.position();
            let lost = self.positioned(channel, |watch, connection| {
                watch.step(connection, position) != Step::Known
            });
            self.end_lost(&lost, out);
        }
    }

    /// The letter has come.
    pub(super) fn compare_positions(
        &mut self,
        channel: &str,
        look: Look,
        now: Moment,
        out: &mut impl Outbox,
    ) {
        let Look { top, is_in_order, has_lost_end } = look;
        let Some(channel) = self.roster.subscribers().find(channel) else { return };
        // Nothing that is on its way leads into another epoch, or back.
        let lost = self.positioned(channel, |watch, connection| {
            watch.is_elsewhere(connection, top)
                || is_in_order && watch.lacks(connection, top)
                || has_lost_end && watch.is_beyond(connection, top)
        });
        let may_come = !is_in_order && !self.lacking(channel, top).is_empty();
        let Some(watch) = self.watch_mut(channel) else { return };
        if may_come {
            self.suspect(channel, top, now);
        } else if !watch.confirm(look, now) {
            self.roster.schedule_check(channel, now); // published since? Else the next look tells.
        }
        self.end_lost(&lost, out);
    }

    /// Some lack what may be on its way. What was suspected before keeps its time, as long as somebody lacks it; then the
    /// stream is looked at again.
    fn suspect(&mut self, channel: u32, top: Position, now: Moment) {
        let watch = self.roster.subscribers().audience(channel).watch.as_deref();
        let before = watch.and_then(|watch| watch.suspicion);
        let before = before.filter(|before| !self.lacking(channel, before.top).is_empty());
        let Some(watch) = self.watch_mut(channel) else { return };
        if let Some(before) = before {
            watch.is_doubted |= before.top != top;
            return;
        }
        let until = now.after(SUSPICION);
        watch.suspicion = Some(Suspicion { top, until });
        if !watch.is_doubted {
            self.roster.schedule_check(channel, until); // else it is looked at sooner
        }
    }

    fn watch_mut(&mut self, channel: u32) -> Option<&mut Watch> {
        self.roster.subscribers_mut().audience_mut(channel).watch.as_deref_mut()
    }

    /// The positioned subscribers of a channel that lack something of the stream up to `top`.
    fn lacking(&self, channel: u32, top: Position) -> Vec<(ConnectionKey, usize)> {
        self.positioned(channel, |watch, connection| watch.lacks(connection, top))
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
                Some((self.roster.key_at(one.connection)?, place(one.connection, one.place())?))
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

/// How long a publication may be on its way here after the broker told that it exists.
const SUSPICION: Duration = Duration::from_secs(5);
