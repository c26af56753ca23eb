//! The `subscribe` command (protocol §8): checks in the order of Centrifugo, then an entry in the subscriber list.
//! In: a SubscribeRequest → out: a SubscribeResult, an error, or a disconnect.
//! Uses: channel rules, subscription tokens, the steps below. Never: history; the steps below read it.
//! Changed here: order and answers of the checks. Permission rules live in `channel/permission.rs`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use fanwire_area::{AreaError, View};
use fanwire_auth::TokenId;
use fanwire_auth::{Overrides, SubscriptionClaims};
use fanwire_policy::InNamespace;
use fanwire_policy::channel::{Decider, SubscribeDecision};
use fanwire_policy::hooks::{CommandDecision, SubscribeEvent, SubscribeGrant};
use fanwire_policy::options::{Namespace, SubscriptionType};
use fanwire_protocol::{Disconnect, ErrorCode, Reply, SubscribeRequest, SubscribeResult};

use super::credentials::{self, TokenErrors, TokenOwner};
use super::hook::{HookDecision, RoutedHook};
use super::{CommandContext, CommandStep, StepResult, filters, named};
use crate::encode_job::{Encoded, ReplySource};
use crate::node::is_polled;
use crate::pending::{
    GridView, PendingChannel, PendingSubscribe, SubscribeOrigin, Tracking, Visibility,
};
use crate::refusal::CommandError;
use crate::session::{Lifetime, SubscriptionGrant};
use crate::shared_replies::{SharedReplies, SubscribeReply};

mod begin;
mod commit;
mod options;
mod recover;

pub(super) use begin::begin;
pub(super) use commit::{Finished, Progress, all};
pub(super) use options::{SubscribeParameters, claimed, deltas};

pub(super) fn handle(context: &mut CommandContext<'_>, request: SubscribeRequest) -> StepResult {
    check_request(context, &request)?;
    let namespace = context.resolve(&request.channel)?;
    let kind = namespace.subscription_type;
    context.limit_in(InNamespace::Subscribe, &request.channel, namespace)?;
    check_type(&request, kind)?;
    let authorized = match authorize(context, &request, namespace)? {
        HookDecision::Pending(answer) => return Ok(CommandStep::Ask(answer)),
        HookDecision::Made(authorized) => authorized.expect(AUTHORIZED),
    };
    let Authorized { terms, lifetime, overrides, data, ignores_request } = authorized;
    let view = first_view(namespace, &request.data)?;
    let requested = Some(&request).filter(|_| !ignores_request);
    let tracking = if is_polled(namespace) {
        Tracking::None
    } else {
        Tracking::of(context, namespace, overrides, requested)
    };
    let parameters = SubscribeParameters {
        channel: &request.channel,
        server_side: false,
        terms,
        tracking,
        delta: deltas(namespace, tracking, &request).filter(|_| !is_polled(namespace)),
        visibility: Visibility::of(context, namespace, overrides, requested),
        claimed: Some(claimed(&request)),
        recovers: request.recover,
        only_recovered: request.flag & ONLY_RECOVERED != 0,
        mode: namespace.force_recovery_mode,
        data,
        requested_data: request.data.clone(),
        view,
    };
    let channels = vec![begin(context, namespace, parameters, 0)];
    Ok(CommandStep::Enter(Box::new(PendingSubscribe::new(
        channels,
        SubscribeOrigin::Subscribe(lifetime),
    ))))
}

/// The rights that a token, a hook or the permissions grant to a client.
pub(super) struct Authorized {
    /// The terms, with the filters of the request and the grant.
    pub(super) terms: Option<Box<SubscriptionGrant>>,
    pub(super) lifetime: Lifetime,
    pub(super) overrides: Overrides,
    /// Application data for the result.
    pub(super) data: Bytes,
    /// Options in the request have no effect.
    pub(super) ignores_request: bool,
}

/// Decides whether the client may subscribe, and until when; checks its filter.
pub(super) fn authorize(
    context: &mut CommandContext<'_>,
    request: &SubscribeRequest,
    namespace: &Namespace,
) -> Result<HookDecision<Authorized>, CommandError> {
    let permit = match permit(context, request, namespace)? {
        HookDecision::Pending(answer) => return Ok(HookDecision::Pending(answer)),
        HookDecision::Made(permit) => permit.unwrap_or_default(),
    };
    let lifetime = Lifetime::of(context, permit.expire_at)?;
    let filter = filters::of_subscribe(request, &permit.server_tags_filter, namespace)?;
    let terms = SubscriptionGrant::boxed(permit.info, lifetime.expire_at);
    let terms = SubscriptionGrant::refreshed(terms, context.refreshes_subscriptions(namespace));
    let terms = SubscriptionGrant::by_token(terms, permit.token);
    Ok(HookDecision::Made(Some(Authorized {
        terms: SubscriptionGrant::filtering(terms, filter),
        lifetime,
        overrides: permit.overrides,
        data: permit.data,
        ignores_request: permit.ignores_request,
    })))
}

/// All answers arrived: the subscription is made, or refused.
pub(super) fn finish(
    context: &mut CommandContext<'_>,
    id: u32,
    channels: Vec<PendingChannel>,
    encoded: Option<Result<Encoded, ErrorCode>>,
    lifetime: Lifetime,
) -> Result<Finished, CommandError> {
    let token = channels[0].terms.as_ref().and_then(|terms| terms.token.as_deref());
    if let Err(error) = check_token(context, &channels[0].channel, token) {
        // It was revoked during the wait.
        context.abandon(&channels);
        return Err(error);
    }
    // The client does not learn of an end that a hook moves.
    let is_of_hook = channels[0].terms.as_ref().is_some_and(|terms| terms.is_refreshed_by_hook);
    let has_end = lifetime.expires();
    let lifetime = if is_of_hook { Lifetime { expire_at: None } } else { lifetime };
    let expires = lifetime.expires();
    let ttl = lifetime.ttl(context);
    let channel = Arc::clone(&channels[0].channel);
    let namespace = context.settings.channels.resolve_trusted(&channel).ok();
    let polled = namespace.filter(|namespace| is_polled(namespace));
    let node = context.node;
    let with_lifetime = |mut results: Vec<SubscribeResult>| {
        let mut result = results.pop().expect("one channel is entered");
        result.expires = expires;
        result.ttl = ttl;
        if let Some(namespace) = polled {
            result.r#type = namespace.subscription_type.wire_type();
            result.epoch = node.shared_polls().epoch(&channel, &namespace.shared_poll);
        }
        result
    };
    let is_filtered = channels[0].terms.as_ref().is_some_and(|terms| terms.filter.is_some());
    let finished = match all(context, channels, encoded)? {
        Progress::Entered(results) if is_filtered || !SharedReplies::is_shared(&results[0]) => {
            reply(with_lifetime(results))
        }
        Progress::Entered(results) => {
            let encoding = context.session().encoding;
            let wanted = SubscribeReply { channel: &channel, encoding, id };
            let replies = &mut context.session_table.shared_replies;
            match replies.message(wanted, with_lifetime(results), context.now) {
                Ok(message) => Finished::Encoded(vec![message]),
                Err(result) => reply(*result),
            }
        }
        Progress::Large(results, channels) => {
            let result = with_lifetime(results);
            let has_deltas = result.delta;
            return Ok(Finished::Large(
                ReplySource::Missed(Box::new(result), has_deltas),
                channels,
            ));
        }
        Progress::Encoded(messages) => Finished::Encoded(messages),
    };
    if has_end {
        context.schedule();
    }
    Ok(finished)
}

/// Checks the subscription token of this client.
///
/// # Errors
/// 109 when the server API has revoked it.
pub(super) fn check_token(
    context: &CommandContext<'_>,
    channel: &str,
    token: Option<&TokenId>,
) -> Result<(), CommandError> {
    let owner = TokenOwner { user: &context.session().user, channel: Some(channel) };
    credentials::check_token(context, &owner, token, ErrorCode::TOKEN_EXPIRED)
}

fn reply(result: SubscribeResult) -> Finished {
    Finished::Reply(Reply { subscribe: Some(result), ..Reply::default() })
}

/// Checks that need no rules of the namespace.
pub(super) fn check_request(
    context: &CommandContext<'_>,
    request: &SubscribeRequest,
) -> Result<(), CommandError> {
    named(&request.channel)?;
    if !TYPES.contains(&request.r#type) {
        return Err(CommandError::error(
            ErrorCode::BAD_REQUEST,
            "type is no type of subscriptions",
        ));
    }
    if !matches!(request.delta.as_str(), "" | Namespace::FOSSIL) {
        return Err(CommandError::disconnect(Disconnect::BAD_REQUEST, "delta is not fossil"));
    }
    let channel = &request.channel;
    if !context.settings.channels.fits(channel) && context.resolve(channel).is_err() {
        return Err(ErrorCode::BAD_REQUEST.into());
    }
    if context.subscription_to(&request.channel).is_some() {
        return Err(ErrorCode::ALREADY_SUBSCRIBED.into());
    }
    let is_reserved =
        context.session_table.pending.reservations.has(context.key.index, &request.channel);
    let channels = context.session().channel_count() + context.reservation_count();
    if !is_reserved && channels >= context.settings.options.client.channel_limit {
        return Err(ErrorCode::LIMIT_EXCEEDED.into());
    }
    Ok(())
}

/// Checks that the request is for the kind of its channel.
pub(super) fn check_type(
    request: &SubscribeRequest,
    kind: SubscriptionType,
) -> Result<(), CommandError> {
    if request.r#type != kind.wire_type() {
        return Err(CommandError::error(ErrorCode::PERMISSION_DENIED, OTHER_TYPE));
    }
    Ok(())
}

/// Attributes from the subscription token or a hook; empty without them.
#[derive(Default)]
struct Permit {
    info: Bytes,
    data: Bytes,
    expire_at: Option<u64>,
    overrides: Overrides,
    ignores_request: bool,
    token: Option<TokenId>,
    server_tags_filter: Bytes,
}

fn permit(
    context: &mut CommandContext<'_>,
    request: &SubscribeRequest,
    namespace: &Namespace,
) -> Result<HookDecision<Permit>, CommandError> {
    let hooks = context.node.hooks();
    let decider = if request.token.is_empty() { hooks.decider(namespace) } else { Decider::Token };
    let channels = &context.settings.channels;
    let decided = channels.may_subscribe(context.who(), &request.channel, namespace, decider);
    if decided != SubscribeDecision::AskHook {
        return permit_by(context, request, namespace, decided).map(Some).map(HookDecision::Made);
    }
    let route = namespace.route_of_subscribes();
    let hook = hooks.subscribe.as_ref().map(|hook| RoutedHook { hook, route });
    let event = |context: &CommandContext<'_>| {
        let session = context.session();
        let client = session.client_info(None);
        SubscribeEvent::new(
            client,
            session.context(),
            request.channel.clone(),
            request.data.clone(),
        )
    };
    match context.ask(hook, event, CommandDecision::Subscribe, CommandDecision::into_subscribe)? {
        HookDecision::Pending(answer) => Ok(HookDecision::Pending(answer)),
        HookDecision::Made(Some(grant)) => Ok(HookDecision::Made(Some(grant.into()))),
        HookDecision::Made(None) => {
            let rules = &context.settings.channels;
            let decided =
                rules.may_subscribe(context.who(), &request.channel, namespace, Decider::Rules);
            permit_by(context, request, namespace, decided).map(Some).map(HookDecision::Made)
        }
    }
}

/// The attributes that a decision without a hook gives, from the token if that decides.
fn permit_by(
    context: &CommandContext<'_>,
    request: &SubscribeRequest,
    namespace: &Namespace,
    decision: SubscribeDecision,
) -> Result<Permit, CommandError> {
    let channel = request.channel.as_str();
    match decision {
        SubscribeDecision::Allowed => Ok(Permit::default()),
        SubscribeDecision::Denied(code) => {
            let rules = &context.settings.channels;
            Err(CommandError::error(code, rules.why_denied(context.who(), channel, namespace)))
        }
        SubscribeDecision::AskHook => unreachable!("a hook was asked before"),
        SubscribeDecision::VerifyToken => {
            let errors = TokenErrors {
                expired: ErrorCode::TOKEN_EXPIRED.into(),
                invalid: ErrorCode::PERMISSION_DENIED.into(),
            };
            let (claims, token) =
                credentials::of_subscription(context, channel, &request.token, errors)?;
            check_token(context, channel, Some(&token))?;
            let SubscriptionClaims { info, data, expire_at, overrides, server_tags_filter, .. } =
                claims;
            Ok(Permit {
                info,
                data,
                expire_at,
                overrides,
                ignores_request: false,
                token: Some(token),
                server_tags_filter,
            })
        }
    }
}

impl From<SubscribeGrant> for Permit {
    fn from(grant: SubscribeGrant) -> Self {
        let SubscribeGrant {
            info,
            data,
            overrides,
            expire_at,
            ignores_request,
            server_tags_filter,
        } = grant;
        let token = None;
        Self { info, data, expire_at, overrides, ignores_request, token, server_tags_filter }
    }
}

/// The view in the data of a subscribe to a channel with places.
fn first_view(namespace: &Namespace, data: &[u8]) -> Result<Option<Box<GridView>>, CommandError> {
    let Some(grid) = namespace.grid() else { return Ok(None) };
    let invalid = |error: AreaError| CommandError::error(ErrorCode::BAD_REQUEST, error.text());
    let Some(view) = View::in_data(data).map_err(invalid)? else { return Ok(None) };
    grid.change(&view, &[]).map_err(invalid)?;
    Ok(Some(Box::new(GridView { grid, view })))
}

/// Bit of `flag`: error 112 instead of a subscription that was not recovered (protocol §4).
const ONLY_RECOVERED: i64 = 2;
/// `type` of a stream subscription, and of a shared poll subscription.
const TYPES: RangeInclusive<i32> = 0..=4;

const OTHER_TYPE: &str = "type is not the subscription_type of the namespace";
const AUTHORIZED: &str = "who decides grants something";
