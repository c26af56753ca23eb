//! Control commands for one connection: a subscription or another lifetime (server API §3).
//! In: a control command, a connected session → out: the pushes for the client, or the disconnect.
//! Uses: `subscribe`, `lifetime`, the session table, as client commands do. Never: permissions; the server has all.
//! Changed here: the effect of a control command on a session. `hub/control_commands.rs` selects the sessions.

use std::sync::Arc;

use fanwire_broker::Renewal;
use fanwire_cluster::{ServerSubscribe, ServerSubscription};
use fanwire_policy::options::RecoveryMode;
use fanwire_policy::recovery::ClaimedPosition;
use fanwire_protocol::{Disconnect, ErrorCode, Refresh, SubscribeResult};

use super::subscribe::{self, Finished, Progress, SubscribeParameters};
use super::{CommandContext, CommandStep};
use crate::encode_job::{Encoded, ReplySource};
use crate::pending::{PendingChannel, PendingSubscribe, SubscribeOrigin, Tracking, Visibility};
use crate::refusal::{CommandError, Consequence};
use crate::session::Lifetime;
use crate::session::{NO_EXPIRY, SubscriptionGrant};

/// Starts a subscription. `None` when the session is subscribed already, or the command came too late.
///
/// # Errors
/// 3505 at `client.channel_limit`.
pub(super) fn begin(
    context: &mut CommandContext<'_>,
    command: &Arc<ServerSubscribe>,
) -> Result<Option<CommandStep>, Disconnect> {
    let subscription = command.subscription();
    if context.subscription_to(&subscription.channel).is_some() {
        return Ok(None);
    }
    if context.session().channel_count() >= context.settings.options.client.channel_limit {
        return Err(Disconnect::CHANNEL_LIMIT);
    }
    Ok(pending_channel(context, subscription).ok().map(|(pending_channel, lifetime)| {
        let then = SubscribeOrigin::ControlCommand(lifetime, Arc::clone(command));
        CommandStep::Enter(Box::new(PendingSubscribe::new(vec![pending_channel], then)))
    }))
}

/// Prepares a subscription like other server-side ones, but in stream mode: the client recovers missed publications.
fn pending_channel(
    context: &mut CommandContext<'_>,
    command: &ServerSubscription,
) -> Result<(PendingChannel, Lifetime), ErrorCode> {
    let namespace = context.settings.channels.resolve_trusted(&command.channel)?;
    let lifetime = Lifetime::of(context, command.expire_at)?;
    let since = command.recover_since.as_ref();
    let terms = SubscriptionGrant::boxed(command.info.clone(), lifetime.expire_at);
    let by_hook = context.refreshes_subscriptions(namespace);
    let parameters = SubscribeParameters {
        channel: &command.channel,
        server_side: true,
        terms: SubscriptionGrant::refreshed(terms, by_hook),
        tracking: Tracking::of(context, namespace, command.overrides, None),
        delta: None, // not applied to what the server subscribes (server API §3 subscribe)
        visibility: Visibility::of(context, namespace, command.overrides, None),
        claimed: since.map(|since| ClaimedPosition { offset: since.offset, epoch: &since.epoch }),
        recovers: since.is_some(),
        only_recovered: false,
        mode: RecoveryMode::Stream,
        data: command.data.clone(),
        requested_data: Default::default(),
        view: None,
    };
    Ok((subscribe::begin(context, namespace, parameters, 0), lifetime))
}

/// All answers arrived: the push, then the recovered publications. Where broker or presence failed, the session stays
/// unsubscribed and receives nothing; the caller of the API gets the error, or the log if the caller is on another node.
pub(super) fn finish(
    context: &mut CommandContext<'_>,
    channels: Vec<PendingChannel>,
    encoded: Option<Result<Encoded, ErrorCode>>,
    lifetime: Lifetime,
    command: &ServerSubscribe,
) -> Result<Option<Finished>, CommandError> {
    let channel = Arc::clone(&command.subscription().channel);
    let ordered = |mut results: Vec<SubscribeResult>| {
        ReplySource::Ordered(channel, Box::new(results.pop().expect(ONE)))
    };
    let finished = match subscribe::all(context, channels, encoded) {
        Ok(Progress::Entered(results)) => {
            let (subscribe, missed) = ordered(results).replies();
            context.effects.reply.pushes.extend(missed);
            Finished::Reply(subscribe)
        }
        Ok(Progress::Large(results, channels)) => {
            return Ok(Some(Finished::Large(ordered(results), channels)));
        }
        Ok(Progress::Encoded(messages)) => Finished::Encoded(messages),
        Err(refused) => {
            let Consequence::Error(error) = refused.consequence else { return Err(refused) };
            if !command.failed(error) {
                let user = &context.session().user;
                let channel = &command.subscription().channel;
                context.node.log().failed_subscribe(error, user, channel, context.now);
            }
            return Ok(None);
        }
    };
    if lifetime.expires() {
        context.schedule();
    }
    Ok(Some(finished))
}

/// Sets another lifetime, and another `conn_info` if there is one.
///
/// # Errors
/// 110 when it has passed.
pub(super) fn refresh(
    context: &mut CommandContext<'_>,
    renewal: &Renewal,
) -> Result<Refresh, ErrorCode> {
    let lifetime = Lifetime::of(context, renewal.expire_at)?;
    let session = context.session_mut();
    session.expire_at = lifetime.expire_at.unwrap_or(NO_EXPIRY);
    if !renewal.info.is_empty() {
        session.info = renewal.info.clone();
    }
    context.schedule();
    let lifetime = lifetime.refreshed_by_client(context);
    Ok(Refresh { expires: lifetime.expires(), ttl: lifetime.ttl(context) })
}

const ONE: &str = "a command is about one channel";
