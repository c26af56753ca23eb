//! Refreshes by hooks: connections and subscriptions whose expiry time has passed get a new one, or end (protocol §21).
//! In: a due session → out: questions to hooks; their answers, as notices → out: a new expiry time, or the end.
//! Uses: hooks, `session_table`. Never: sends a lifetime to the client, which does not refresh here.
//! Changed here: what a decision changes. Expiry without hooks is in `timers.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_policy::filter::Filter;
use fanwire_policy::hooks::{RefreshEvent, RefreshGrant, Rejection};
use fanwire_policy::options::ProxyRoute;
use fanwire_protocol::{Disconnect, UnsubscribeCode};

use super::Hub;
use crate::clock::Moment;
use crate::deadlines;
use crate::index::SubscriptionIndex;
use crate::node::Node;
use crate::notice::{Notice, Refreshed};
use crate::outbox::Outbox;
use crate::session::{ConnectionKey, NO_EXPIRY, closing};
use crate::session_table::SessionTable;

impl Hub {
    /// The hook has decided.
    pub(super) fn refreshed(&mut self, refreshed: Refreshed, now: Instant, out: &mut impl Outbox) {
        let key = refreshed.key;
        match renew(&self.node, &mut self.session_table, refreshed, now) {
            Some(Ended::Connection(disconnect)) => self.disconnect(key, &disconnect, out),
            Some(Ended::Subscription(own)) => {
                self.end_subscription(key, own, UnsubscribeCode::SUBSCRIPTION_EXPIRED, out);
            }
            None => {}
        }
    }
}

/// Sessions and subscriptions that a decision ends.
enum Ended {
    Connection(Disconnect),
    Subscription(SubscriptionIndex),
}

/// Sets the new expiry time, or returns what ends without one.
fn renew(
    node: &Node,
    session_table: &mut SessionTable,
    refreshed: Refreshed,
    now: Instant,
) -> Option<Ended> {
    let Refreshed { key, channel, decision } = refreshed;
    let grant = match decision {
        Ok(grant) => grant,
        Err(Rejection::Error(_)) => None,
        Err(Rejection::Disconnect(disconnect)) if disconnect.is_close_code() => {
            return Some(Ended::Connection(disconnect));
        }
        Err(Rejection::Disconnect(_)) => return Some(Ended::Connection(Disconnect::SERVER_ERROR)),
        Err(Rejection::Failed(cause) | Rejection::Unavailable(cause)) => {
            node.log().failed_refresh(&cause, now);
            return None;
        }
    };
    // What has expired by now is not renewed.
    let unix = node.clock().unix(now);
    let grant = grant.filter(|one| one.expire_at.is_none_or(|expire_at| expire_at > unix));
    let ended = match channel {
        Some(channel) => {
            renew_subscription(session_table, key, &channel, grant).unwrap_or_else(|NoFilter| {
                node.log().failed_refresh(NO_FILTER, now);
                None
            })
        }
        None => renew_connection(session_table, key, grant),
    };
    deadlines::schedule(node, session_table, key.index);
    ended
}

fn renew_connection(
    session_table: &mut SessionTable,
    key: ConnectionKey,
    grant: Option<RefreshGrant>,
) -> Option<Ended> {
    let Some(grant) = grant else { return Some(Ended::Connection(Disconnect::EXPIRED)) };
    let session = session_table.session_mut(key)?;
    session.expire_at = grant.expire_at.unwrap_or(NO_EXPIRY);
    if !grant.info.is_empty() {
        session.info = grant.info;
    }
    session.set_meta(grant.meta);
    None
}

/// The `server_tags_filter` of a decision is none.
struct NoFilter;

/// # Errors
/// Nothing is renewed with a filter that is none.
fn renew_subscription(
    session_table: &mut SessionTable,
    key: ConnectionKey,
    channel: &str,
    grant: Option<RefreshGrant>,
) -> Result<Option<Ended>, NoFilter> {
    let Some(own) = session_table.subscription_to(key.index, channel) else { return Ok(None) };
    let Some(session) = session_table.session_mut(key) else { return Ok(None) };
    let subscription = session.subscription_mut(own);
    let terms = subscription.terms.as_mut().filter(|terms| terms.is_refreshed_by_hook);
    // Otherwise it ended, and the client subscribed again.
    let Some(terms) = terms else { return Ok(None) };
    let Some(grant) = grant else {
        return Ok(Some(if subscription.server_side {
            Ended::Connection(Disconnect::SUBSCRIPTION_EXPIRED)
        } else {
            Ended::Subscription(own)
        }));
    };
    let of_server = Filter::of_backend(&grant.server_tags_filter).map_err(|_| NoFilter)?;
    terms.expire_at = grant.expire_at.unwrap_or(NO_EXPIRY);
    if !grant.info.is_empty() {
        terms.info = grant.info;
    }
    if of_server.is_some() {
        session_table.set_server_filter(key.index, own, of_server);
    }
    Ok(None)
}

/// Asks the refresh hook, if there is one, for the next expiry time of a connection whose last one has passed. The answer
/// comes as a notice; without one the hook is asked again after [`REFRESH_AGAIN`].
pub(super) fn ask_if_expired(
    node: &Node,
    session_table: &mut SessionTable,
    key: ConnectionKey,
    now: Moment,
) {
    let Some(hook) = &node.hooks().refresh else { return };
    let inbox = node.inbox(session_table.shard);
    let Some(session) = session_table.session_mut(key) else { return };
    if !session.is_connected() || closing(node.clock(), session.expire_at, Duration::ZERO) > now {
        return;
    }
    session.expire_at += REFRESH_AGAIN.as_secs();
    let client = session.client_info(None);
    let context = session.context();
    let event = RefreshEvent::new(client, context, None);
    hook.call(event, ProxyRoute::default()).then(move |decision| {
        inbox.push(Notice::Refreshed(Box::new(Refreshed { key, channel: None, decision })));
    });
}

/// Asks the hook for the next expiry times of a connection's subscriptions that it refreshes.
pub(super) fn ask_for_expired_subscriptions(hub: &mut Hub, key: ConnectionKey, now: Moment) {
    let node = &*hub.node;
    let session_table = &mut hub.session_table;
    let Some(hook) = &node.hooks().sub_refresh else { return };
    let Some(session) = session_table.session(key).filter(|one| one.is_connected()) else {
        return;
    };
    let is_due = |own: &SubscriptionIndex| {
        let subscription = session.subscription(*own);
        subscription.is_refreshed_by_hook()
            && subscription.closing(node.clock(), Duration::ZERO) <= now
    };
    let all = (0..session.subscriptions.len() as u32).map(SubscriptionIndex);
    for own in all.filter(is_due).collect::<Vec<_>>() {
        let inbox = node.inbox(session_table.shard);
        let Some(session) = session_table.session_mut(key) else { return };
        let client = session.client_info(Some(session.subscription(own)));
        let context = session.context();
        let subscription = session.subscription_mut(own);
        if let Some(terms) = &mut subscription.terms {
            terms.expire_at += REFRESH_AGAIN.as_secs();
        }
        let index = subscription.channel;
        let channel = Arc::clone(&session_table.subscribers().channel_subscribers(index).channel);
        let namespace = hub.settings.channels.resolve_trusted(&channel).ok();
        let route = namespace.map(|namespace| (&namespace.sub_refresh_proxy).into());
        let event = RefreshEvent::new(client, context, Some(channel.clone()));
        hook.call(event, route.unwrap_or_default()).then(move |decision| {
            let channel = Some(channel);
            inbox.push(Notice::Refreshed(Box::new(Refreshed { key, channel, decision })));
        });
    }
}

const NO_FILTER: &str = "the hook has a server_tags_filter that is no filter, or too large";
/// Time after which a refresh hook that did not answer is asked again.
const REFRESH_AGAIN: Duration = Duration::from_secs(60);
