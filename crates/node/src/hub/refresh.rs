//! Refreshes by hooks: connections and subscriptions whose expiry time has passed get a new one, or end (protocol §21).
//! In: a due session → out: questions to hooks; their answers, as notices → out: a new expiry time, or the end.
//! Uses: hooks, `session_table`. Never: sends a lifetime to the client, which does not refresh here.
//! Change here: what a decision changes. Expiry without hooks is in `timers.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanwire_cluster::Renewal;
use fanwire_protocol::{Disconnect, UnsubscribeCode};

use super::Hub;
use crate::clock::Moment;
use crate::hooks::{RefreshEvent, Rejection};
use crate::notice::{Notice, Refreshed};
use crate::outbox::Outbox;
use crate::session::{ConnectionKey, NO_EXPIRY, closing};

impl Hub {
    /// Asks the refresh hook, if there is one, for the next expiry time of a connection whose last one has passed. The answer
    /// comes as a notice; without one the hook is asked again after [`REFRESH_AGAIN`].
    pub(super) fn refresh_if_expired(&mut self, key: ConnectionKey, now: Moment) {
        let Self { node, session_table, .. } = self;
        let Some(hook) = &node.hooks().refresh else { return };
        let inbox = node.inbox(session_table.shard());
        let Some(session) = session_table.session_mut(key) else { return };
        if !session.is_connected() || closing(node.clock(), session.expire_at, Duration::ZERO) > now
        {
            return;
        }
        session.expire_at += REFRESH_AGAIN.as_secs();
        let (client, context) = (session.client_info(None), session.context());
        let event = RefreshEvent { client, context, ..RefreshEvent::default() };
        hook.call(event).then(move |decision| {
            inbox.push(Notice::Refreshed(Box::new(Refreshed { key, channel: None, decision })));
        });
    }

    /// The same for its subscriptions that a hook refreshes.
    pub(super) fn refresh_expired_subscriptions(&mut self, key: ConnectionKey, now: Moment) {
        let Self { node, session_table, settings, .. } = self;
        let Some(hook) = &node.hooks().sub_refresh else { return };
        let Some(session) = session_table.session(key).filter(|one| one.is_connected()) else {
            return;
        };
        let is_due = |place: &usize| {
            let subscription = &session.subscriptions[*place];
            subscription.is_refreshed_by_hook()
                && subscription.closing(node.clock(), Duration::ZERO) <= now
        };
        let due: Vec<usize> = (0..session.subscriptions.len()).filter(is_due).collect();
        for place in due {
            let inbox = node.inbox(session_table.shard());
            let Some(session) = session_table.session_mut(key) else { return };
            let client = session.client_info(Some(&session.subscriptions[place]));
            let (context, subscription) = (session.context(), &mut session.subscriptions[place]);
            if let Some(terms) = &mut subscription.terms {
                terms.expire_at += REFRESH_AGAIN.as_secs();
            }
            let index = subscription.channel;
            let channel =
                Arc::clone(&session_table.subscribers().channel_subscribers(index).channel);
            let namespace = settings.channels.resolve_trusted(&channel).ok();
            let proxy = namespace.and_then(|namespace| namespace.sub_refresh_proxy.get().cloned());
            let event = RefreshEvent { client, context, channel: Some(channel.clone()), proxy };
            hook.call(event).then(move |decision| {
                let channel = Some(channel);
                inbox.push(Notice::Refreshed(Box::new(Refreshed { key, channel, decision })));
            });
        }
    }

    /// The hook has decided.
    pub(super) fn refreshed(&mut self, refreshed: Refreshed, now: Instant, out: &mut impl Outbox) {
        let Refreshed { key, channel, decision } = refreshed;
        let renewal = match decision {
            Ok(renewal) => renewal,
            Err(Rejection::Error(_)) => None,
            Err(Rejection::Disconnect(disconnect)) if disconnect.is_close_code() => {
                return self.disconnect(key, &disconnect, out);
            }
            Err(Rejection::Disconnect(_)) => {
                return self.disconnect(key, &Disconnect::SERVER_ERROR, out);
            }
            Err(Rejection::Failed(cause) | Rejection::Unavailable(cause)) => {
                return self.node.log().failed_refresh(&cause, now);
            }
        };
        // What has expired by now is not renewed.
        let unix = self.node.clock().unix(now);
        let renewal = renewal.filter(|one| one.expire_at.is_none_or(|expire_at| expire_at > unix));
        match (channel, renewal) {
            (None, None) => self.disconnect(key, &Disconnect::EXPIRED, out),
            (None, Some(renewal)) => self.renew(key, renewal),
            (Some(channel), renewal) => self.renew_subscription(key, &channel, renewal, out),
        }
    }

    fn renew(&mut self, key: ConnectionKey, renewal: Renewal) {
        let Some(session) = self.session_table.session_mut(key) else { return };
        session.expire_at = renewal.expire_at.unwrap_or(NO_EXPIRY);
        if !renewal.info.is_empty() {
            session.info = renewal.info;
        }
        session.set_meta(renewal.meta);
        self.session_table.schedule(&self.node, key.index);
    }

    fn renew_subscription(
        &mut self,
        key: ConnectionKey,
        channel: &str,
        renewal: Option<Renewal>,
        out: &mut impl Outbox,
    ) {
        let Some(place) = self.session_table.place_of(key.index, channel) else { return };
        let Some(session) = self.session_table.session_mut(key) else { return };
        let subscription = &mut session.subscriptions[place];
        let Some(terms) = subscription.terms.as_mut().filter(|terms| terms.is_refreshed_by_hook)
        else {
            return; // it ended, and the client subscribed again
        };
        let Some(renewal) = renewal else {
            return match subscription.server_side {
                true => self.disconnect(key, &Disconnect::SUBSCRIPTION_EXPIRED, out),
                false => {
                    self.end_subscription(key, place, UnsubscribeCode::SUBSCRIPTION_EXPIRED, out);
                }
            };
        };
        terms.expire_at = renewal.expire_at.unwrap_or(NO_EXPIRY);
        if !renewal.info.is_empty() {
            terms.info = renewal.info;
        }
        self.session_table.schedule(&self.node, key.index);
    }
}

/// Time after which a refresh hook that did not answer is asked again.
const REFRESH_AGAIN: Duration = Duration::from_secs(60);
