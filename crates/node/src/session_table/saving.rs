//! The record of a session, read from the tables of a shard.
//! In: a session with its subscriptions, a moment → out: its record.
//! Uses: the tables, `session_record`. Pure. Never: decides whether the session may move; `hub/takeover.rs` does.
//! Changed here: which tables a record has a part of. Values are written in `session_record/parts.rs`.

use std::sync::Arc;

use fanwire_area::Tile;

use super::SessionTable;
use crate::clock::Moment;
use crate::session::{Session, Subscription};
use crate::session_record::{
    AppRecord, ConnectionRecord, PositionRecord, SessionRecord, SubscriptionRecord, TimersRecord,
    ViewRecord, delta_number, end, left,
};

impl SessionTable {
    /// The record of a session without its rates.
    pub(crate) fn record(&self, index: u32, session: &Session, now: Moment) -> SessionRecord {
        let own = session.subscriptions.iter().filter(|subscription| !subscription.is_tile);
        let views = self.views.of(index);
        SessionRecord {
            connection: ConnectionRecord::of(session),
            user: session.user.as_ref().to_owned(),
            id: session.id.as_bytes().to_vec(),
            secret: session.secret.iter().flat_map(|secret| *secret.as_bytes()).collect(),
            info: session.info.clone(),
            expire_at: end(session.expire_at),
            connected_at_ms: session.connected_at_ms(),
            timers: TimersRecord {
                beat: left(now, session.beat_at),
                pong: left(now, session.pong_by),
                awaits_pong: session.awaits_pong,
                is_held: session.is_held,
                renewal: left(now, self.timers.renewals.due(index)),
            },
            context: session.context.as_deref().map(Into::into),
            app: AppRecord {
                name: session.app.name.as_ref().to_owned(),
                version: session.app.version.as_ref().to_owned(),
                labels: session.app.labels.as_ref().clone(),
            },
            grant: session.grant.as_deref().map(Into::into),
            subscriptions: own.map(|one| self.subscription_record(index, one)).collect(),
            views: views.map(|(channel, tiles)| view_record(channel, tiles)).collect(),
            rates: None,
        }
    }

    fn subscription_record(&self, index: u32, subscription: &Subscription) -> SubscriptionRecord {
        let channel = self.subscribers.channel_subscribers(subscription.channel);
        let tracker = channel.position_tracker.as_deref().filter(|_| subscription.positioned);
        let position = tracker.map(|tracker| {
            let position = tracker.position_of(index);
            let may_have_gap = tracker.may_have_gap || tracker.possible_gap.is_some();
            PositionRecord {
                offset: position.offset,
                epoch: position.epoch.to_string(),
                may_have_gap,
            }
        });
        let deltas = channel.deltas.as_deref();
        SubscriptionRecord {
            channel: channel.channel.as_ref().to_owned(),
            server_side: subscription.server_side,
            present: subscription.present,
            announced: subscription.announced,
            wants_join_leave: subscription.wants_join_leave,
            has_entries: subscription.has_entries,
            position,
            delta: deltas.map_or(0, |deltas| delta_number(deltas.state(subscription.subscriber))),
            terms: subscription.terms.as_deref().map(Into::into),
        }
    }
}

fn view_record(channel: &Arc<str>, tiles: &[Tile]) -> ViewRecord {
    let tiles = tiles.iter().map(Into::into).collect();
    ViewRecord { channel: channel.as_ref().to_owned(), tiles }
}
