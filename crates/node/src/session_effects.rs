//! Changes of the session table with what they cause outside: registry, presence, joins and leaves, reports to hooks.
//! In: changes that hub and commands want → out: changed tables, then notices to the node, in the order of the change.
//! Uses: `session_table`, the node. Never: sends to clients, decides.
//! Changed here: what others learn of a change. What the tables do is in `session_table.rs`.

use std::sync::Arc;
use std::time::Instant;

use fanwire_area::{AreaError, ViewChange};
use fanwire_broker::Change;
use fanwire_policy::hooks::ClientReport;
use fanwire_policy::tiles::tile_channel;
use fanwire_protocol::Disconnect;

use crate::deadlines;
use crate::index::{MovedSubscription, SubscriptionIndex, SubscriptionKey};
use crate::map_presence::MapPresence;
use crate::map_release;
use crate::node::Node;
use crate::notice::Notice;
use crate::pending::{GridView, PendingChannel};
use crate::registry::ShardId;
use crate::session::{CommandSource, ConnectionInfo, ConnectionKey, Session, SubscriptionGrant};
use crate::session_table::{EndedSession, EndedSubscription, NewSubscription, SessionTable};

/// Adds a session that waits for `connect`. An earlier session at its index ends.
pub(crate) fn open(
    node: &Node,
    session_table: &mut SessionTable,
    key: ConnectionKey,
    connection: ConnectionInfo,
    now: Instant,
) {
    if let Some(old) = session_table.key_at(key.index) {
        end_session(node, session_table, old, &Disconnect::CONNECTION_CLOSED);
    }
    let stale_at = node.clock().moment(now).after(node.options().client.stale_close_delay);
    let has_secret = connection.command_source != CommandSource::Connection;
    session_table.open(key, connection, node.hooks().decide(), stale_at);
    if let Some(session) = session_table.session_mut(key).filter(|_| has_secret) {
        session.secret = Some(Box::new(node.chance().id()));
    }
}

/// Ends a session because of `disconnect`. Idempotent; false when it was gone.
pub(crate) fn end_session(
    node: &Node,
    session_table: &mut SessionTable,
    key: ConnectionKey,
    disconnect: &Disconnect,
) -> bool {
    if session_table.session(key).is_some() {
        map_release::end_all(node, session_table, key.index);
    }
    let Some(ended) = session_table.end_session(key) else { return false };
    let EndedSession { session, subscriptions, pending } = ended;
    for subscription in subscriptions {
        tell_ended(node, session_table.shard, &session, subscription);
    }
    abandon(node, session_table.shard, &session, &pending);
    if session.is_connected() {
        node.registry().exit(&session.user);
        if let Some(report) = &node.hooks().report {
            let client = session.client_info(None);
            let disconnect = disconnect.clone();
            report(ClientReport::Disconnected { client, disconnect });
        }
    }
    true
}

/// Ends a subscription of a session. Returns which one moved to its index.
pub(crate) fn end_subscription(
    node: &Node,
    session_table: &mut SessionTable,
    index: u32,
    subscription: SubscriptionIndex,
) -> MovedSubscription {
    let ended = session_table.end_subscription(index, subscription);
    let moved = ended.moved;
    if let Some(session) = session_table.at(index) {
        tell_ended(node, session_table.shard, session, ended);
    }
    moved
}

fn tell_ended(node: &Node, shard: ShardId, session: &Session, ended: EndedSubscription) {
    let EndedSubscription { channel, subscription, tracked, .. } = ended;
    if let Some(report) = node.hooks().report.as_ref().filter(|_| !subscription.is_tile) {
        let client = session.client_info(Some(&subscription));
        let channel = Arc::clone(&channel);
        report(ClientReport::Unsubscribed { client, channel });
    }
    if subscription.present {
        node.channels().disappear(&channel, &session.client());
    }
    node.shared_polls().untrack(&channel, tracked);
    if !subscription.announced {
        return node.channels().leave(&channel, shard);
    }
    let client = session.client_info(Some(&subscription));
    node.channels().announce(&channel, Change::Leave, client);
    // The inbox may have joins. A client that subscribes before they are delivered gets them, and needs the leaves as well.
    node.inbox(shard).push(Notice::Left(channel));
}

/// Undoes a pending subscribe: its channels lose the session in registry and presence.
pub(crate) fn abandon(node: &Node, shard: ShardId, session: &Session, channels: &[PendingChannel]) {
    for pending_channel in channels {
        if pending_channel.visibility.present {
            node.channels().disappear(&pending_channel.channel, &session.client());
        }
        node.channels().leave(&pending_channel.channel, shard);
    }
}

/// Publishes the join of a subscription; its leave follows when it ends.
pub(crate) fn announce(
    node: &Node,
    session_table: &mut SessionTable,
    index: u32,
    subscription: SubscriptionIndex,
) {
    let (channel, client) = session_table.announce(index, subscription);
    node.channels().announce(&channel, Change::Join, client);
}

/// Renews the presence of a session in all its channels, and schedules the next renewal.
pub(crate) fn renew_presence(
    node: &Node,
    session_table: &mut SessionTable,
    index: u32,
    now: Instant,
) {
    let mut is_present = MapPresence { node, session_table, now }.renew(index);
    for (channel, client) in session_table.presences(index) {
        is_present = true;
        // A failed renewal is repeated at the next interval.
        drop(node.channels().appear(channel, client, now));
    }
    if is_present {
        session_table.timers.renewals.set(index, deadlines::next_renewal(node, now));
    }
}

/// A subscriber of a spatial channel has another view. Returns the subscriptions that ended.
///
/// # Errors
/// Those of [`Grid::change`]; nothing has changed then.
pub(crate) fn set_view(
    node: &Node,
    session_table: &mut SessionTable,
    key: SubscriptionKey<'_>,
    wanted: GridView,
) -> Result<Vec<MovedSubscription>, AreaError> {
    let SubscriptionKey { connection: index, channel } = key;
    let own = session_table.subscription_to(index, channel);
    let viewer = session_table.at(index).zip(own);
    let filter = viewer.and_then(|(session, own)| session.subscription(own).filter().cloned());
    let (change, ended) = session_table.change_view(key, wanted)?;
    let moved = tell_all_ended(node, session_table, index, ended);
    for tile in &change.entered {
        let name = node.channels().join(&tile_channel(channel, *tile), session_table.shard);
        let terms = SubscriptionGrant::filtering(None, filter.clone());
        let subscription = NewSubscription { server_side: false, is_tile: true, terms };
        session_table.add_subscription(index, &name, subscription);
    }
    if let (Some(report), Some(session)) = (&node.hooks().report, session_table.at(index))
        && change != ViewChange::default()
    {
        let client = session.client_info(None);
        let channel = Arc::clone(channel);
        report(ClientReport::ViewChanged { client, channel, change });
    }
    Ok(moved)
}

/// The subscription to a spatial channel ends: so do those of its tiles. Returns them.
pub(crate) fn end_view(
    node: &Node,
    session_table: &mut SessionTable,
    index: u32,
    channel: &str,
) -> Vec<MovedSubscription> {
    let ended = session_table.end_view(index, channel);
    tell_all_ended(node, session_table, index, ended)
}

fn tell_all_ended(
    node: &Node,
    session_table: &SessionTable,
    index: u32,
    ended: Vec<EndedSubscription>,
) -> Vec<MovedSubscription> {
    let Some(session) = session_table.at(index) else { return Vec::new() };
    let tell = |ended: EndedSubscription| {
        let moved = ended.moved;
        tell_ended(node, session_table.shard, session, ended);
        moved
    };
    ended.into_iter().map(tell).collect()
}
