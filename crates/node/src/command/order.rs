//! What the server orders for a connection that is there: a subscription or another lifetime (server API §3).
//! In: an order, a connected session → out: what the client is told, or the disconnect of what cannot be.
//! Uses: `subscribe`, `lifetime`, the session_table, as the commands of clients do. Never: permissions; the server may.
//! Change here: what an order changes in a session. Who it reaches is decided in `hub/orders.rs`.

use std::sync::Arc;

use fanwire_protocol::{Disconnect, ErrorCode, Refresh, SubscribeResult};

use super::subscribe::{self, Finished, Progress, SubscribeParameters};
use super::{Refusal, Step, Turn};
use crate::control::{Renewal, ServerSubscription, SubscribeOrder};
use crate::encode_job::{Encoded, Found};
use crate::options::RecoveryMode;
use crate::pending::{PendingChannel, PendingSubscribe, SubscribeOrigin, Tracking, Visibility};
use crate::recovery::Claim;
use crate::session::Lifetime;
use crate::session::{NO_EXPIRY, Terms};

/// Begins to subscribe. `None` when the session is subscribed already, or the order came too late.
///
/// # Errors
/// 3505 at `client.channel_limit`.
pub(super) fn begin(
    turn: &mut Turn<'_>,
    order: &Arc<SubscribeOrder>,
) -> Result<Option<Step>, Disconnect> {
    let subscription = order.subscription();
    if turn.place_of(&subscription.channel).is_some() {
        return Ok(None);
    }
    if turn.session().subscriptions.len() >= turn.node.options().client.channel_limit {
        return Err(Disconnect::CHANNEL_LIMIT);
    }
    Ok(entry(turn, subscription).ok().map(|(entry, lifetime)| {
        let then = SubscribeOrigin::Order(lifetime, Arc::clone(order));
        Step::Enter(Box::new(PendingSubscribe::new(vec![entry], then)))
    }))
}

/// As other subscriptions of the server enter, but in stream mode: this is about what the client missed.
fn entry(
    turn: &mut Turn<'_>,
    order: &ServerSubscription,
) -> Result<(PendingChannel, Lifetime), ErrorCode> {
    let namespace = turn.node.rules().resolve_trusted(&order.channel)?;
    let lifetime = Lifetime::of(turn, order.expire_at)?;
    let since = order.recover_since.as_ref();
    let wish = SubscribeParameters {
        channel: &order.channel,
        server_side: true,
        terms: Terms::boxed(order.info.clone(), lifetime.expire_at),
        tracking: Tracking::of(turn, namespace, order.overrides, None),
        delta: None, // not applied to what the server subscribes (server API §3 subscribe)
        visibility: Visibility::of(turn, namespace, order.overrides, None),
        claim: since.map(|since| Claim { offset: since.offset, epoch: &since.epoch }),
        recovers: since.is_some(),
        only_recovered: false,
        mode: RecoveryMode::Stream,
        data: order.data.clone(),
    };
    Ok((subscribe::begin(turn, namespace, wish, 0), lifetime))
}

/// Every answer is there: the push, and behind it what was missed. Where broker or presence failed, the session stays
/// unsubscribed and hears nothing; whoever gave the order does.
pub(super) fn finish(
    turn: &mut Turn<'_>,
    entries: Vec<PendingChannel>,
    encoded: Option<Result<Encoded, ErrorCode>>,
    lifetime: Lifetime,
    order: &SubscribeOrder,
) -> Result<Option<Finished>, Refusal> {
    let channel = Arc::clone(&order.subscription().channel);
    let ordered = |mut results: Vec<SubscribeResult>| {
        Found::Ordered(channel, Box::new(results.pop().expect(ONE)))
    };
    let finished = match subscribe::all(turn, entries, encoded) {
        Ok(Progress::Entered(results)) => {
            let (subscribe, missed) = ordered(results).replies();
            turn.backlog.pushes.extend(missed);
            Finished::Reply(subscribe)
        }
        Ok(Progress::Large(results, entries)) => {
            return Ok(Some(Finished::Large(ordered(results), entries)));
        }
        Ok(Progress::Told(messages)) => Finished::Told(messages),
        Err(Refusal::Error(error)) => {
            order.failed(error);
            return Ok(None);
        }
        Err(refusal) => return Err(refusal),
    };
    if lifetime.expires() {
        turn.session_table.schedule(turn.node, turn.key.index);
    }
    Ok(Some(finished))
}

/// Another lifetime, and perhaps another `conn_info`.
///
/// # Errors
/// 110 when it is over already.
pub(super) fn refresh(turn: &mut Turn<'_>, renewal: &Renewal) -> Result<Refresh, ErrorCode> {
    let lifetime = Lifetime::of(turn, renewal.expire_at)?;
    let session = turn.session_mut();
    session.expire_at = lifetime.expire_at.unwrap_or(NO_EXPIRY);
    if !renewal.info.is_empty() {
        session.info = renewal.info.clone();
    }
    turn.session_table.schedule(turn.node, turn.key.index);
    Ok(Refresh { expires: lifetime.expires(), ttl: lifetime.ttl(turn) })
}

const ONE: &str = "an order is about one channel";
