//! The `publish` command (protocol §16): sends a client's publication to the broker.
//! In: a PublishRequest → out: an empty result, or an error; the publisher receives its own publication, before the reply
//! if the broker is in memory; with `exclude_publisher` it receives none.
//! Uses: channel rules, the broker through the node. Never: delivers by itself.
//! Changed here: order of the checks and the contents of a client's publication.

use fanwire_broker::{KeyOwner, PublishOptions};
use fanwire_policy::InNamespace;
use fanwire_policy::channel::{check_data, may_publish};
use fanwire_policy::hooks::{CommandDecision, PublishEvent, PublishGrant};
use fanwire_policy::options::{ClientIdempotency, Namespace, SubscriptionType};
use fanwire_protocol::{ErrorCode, Publication, PublishRequest, PublishResult, Reply, text_member};

use super::hook::{HookDecision, RoutedHook};
use super::{CommandContext, CommandStep, StepResult, named};
use crate::node::CheckedChannel;
use crate::pending::Outcome;
use crate::refusal::CommandError;

pub(super) fn handle(context: &mut CommandContext<'_>, request: PublishRequest) -> StepResult {
    named(&request.channel)?;
    let namespace = context.resolve(&request.channel)?;
    context.limit_in(InNamespace::Publish, &request.channel, namespace)?;
    if namespace.subscription_type == SubscriptionType::SharedPoll {
        return Err(ErrorCode::NOT_AVAILABLE.into()); // protocol §28
    }
    if !namespace.is_of_streams() {
        return Err(CommandError::error(ErrorCode::PERMISSION_DENIED, OTHER_TYPE));
    }
    check_data(namespace.publication_data_format, &request.data)
        .map_err(|code| CommandError::error(code, WRONG_DATA))?;
    let key = client_key(context, namespace, &request.data)?;
    let own = context.subscription_to(&request.channel);
    let session = context.session();
    let info = session.client_info(own.map(|own| session.subscription(own)));
    let event = |context: &CommandContext<'_>| {
        let facts = context.session().context();
        PublishEvent::new(info.clone(), facts, request.channel.clone(), request.data.clone())
    };
    let route = namespace.route_of_publishes();
    let hook = context.node.hooks().publish.as_ref().filter(|hook| hook.applies(&route));
    let routed = hook.map(|hook| RoutedHook { hook, route });
    let decision =
        context.ask(routed, event, CommandDecision::Publish, CommandDecision::into_publish)?;
    let grant = match decision {
        HookDecision::Pending(answer) => return Ok(CommandStep::Ask(answer)),
        HookDecision::Made(Some(grant)) => grant,
        HookDecision::Made(None) => {
            may_publish(context.who(), namespace, own.is_some())?;
            PublishGrant { delta: namespace.delta_publish, ..PublishGrant::default() }
        }
    };
    if grant.is_processed {
        return Ok(CommandStep::Done(result()));
    }
    let publication = Publication {
        data: grant.data.unwrap_or(request.data),
        tags: grant.tags,
        info: Some(info),
        ..Publication::default()
    };
    let mut options = PublishOptions {
        idempotency_key: grant.idempotency_key,
        skip_history: grant.skip_history,
        delta: grant.delta,
        version: grant.version,
        version_epoch: grant.version_epoch,
        exclude_client: namespace.exclude_publisher.then(|| context.session().client_id()),
        ..PublishOptions::default()
    };
    if let Some((idempotency_key, owner)) = key.filter(|_| options.idempotency_key.is_empty()) {
        options.idempotency_key = idempotency_key;
        options.key_owner = Some(owner);
    }
    let channel = CheckedChannel {
        name: &request.channel,
        namespace: context.settings.channels.namespace_id(&request.channel),
        retention: namespace.retention(),
    };
    let accepted =
        context.node.channels().publish_checked(channel, publication, &options, context.now);
    let step = CommandStep::of(accepted, |_| result())?;
    let is_done = matches!(step, CommandStep::Done(_));
    context.effects.reply.follows_own_publication =
        is_done && own.is_some() && !namespace.exclude_publisher;
    Ok(step)
}

/// The idempotency key in the data of a client, where the namespace has a field for it. Each user has keys of their own, and so has each
/// connection without a user: who guesses the key of another takes nothing from them.
///
/// # Errors
/// 107 when the field is missing, empty or too long, or no text.
fn client_key(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    data: &[u8],
) -> Result<Option<(String, KeyOwner)>, CommandError> {
    let ClientIdempotency { field, ttl } = &namespace.client_idempotency;
    if field.is_empty() {
        return Ok(None);
    }
    let key = text_member(data, field)
        .filter(|key| (1..=KEY_BYTES_MAX).contains(&key.len()))
        .ok_or(CommandError::error(ErrorCode::BAD_REQUEST, NO_KEY))?;
    let session = context.session();
    let name = if session.user.is_empty() {
        format!("client {}", session.client())
    } else {
        format!("user {}", session.user)
    };
    Ok(Some((key, KeyOwner { name, ttl: *ttl })))
}

fn result() -> Outcome {
    Reply { publish: Some(PublishResult {}), ..Reply::default() }.into()
}

/// Longest idempotency key of a client, in bytes.
const KEY_BYTES_MAX: usize = 256;
const NO_KEY: &str =
    "data has no text of 1 to 256 bytes in the client_idempotency_field of the namespace";
const OTHER_TYPE: &str = "type is not the subscription_type of the namespace";
const WRONG_DATA: &str =
    "data is missing, or has another format than publication_data_format of the namespace";
