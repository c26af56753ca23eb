//! The `publish` command for map channels: a client sets or removes a key (protocol §27).
//! In: a PublishRequest with a key → out: an empty result, also when a check of the engine suppressed the change, or an error.
//! Uses: channel rules, the node's maps. Never: delivers by itself.
//! Changed here: which key a client changes, and the order of the checks. Checks of the change are in the engine.

use fanwire_broker::Answer;
use fanwire_broker::map::{MapOutcome, MapPublish, MapRefusal, MapRemoval};
use fanwire_policy::InNamespace;
use fanwire_policy::channel::{may_remove_keys, may_set_keys};
use fanwire_policy::options::{ClientKey, SubscriptionType};
use fanwire_protocol::{ErrorCode, Publication, PublishRequest, PublishResult, Reply};

use crate::command::{CommandContext, CommandStep, StepResult, named};
use crate::refusal::CommandError;

pub(in crate::command) fn handle(
    context: &mut CommandContext<'_>,
    request: PublishRequest,
) -> StepResult {
    named(&request.channel)?;
    let namespace = context.resolve(&request.channel)?;
    context.limit_in(InNamespace::Publish, &request.channel, namespace)?;
    if namespace.subscription_type != SubscriptionType::Map {
        return Err(CommandError::error(ErrorCode::PERMISSION_DENIED, NO_MAP));
    }
    let own = context.subscription_to(&request.channel);
    let map = &namespace.map;
    if request.removed {
        may_remove_keys(context.who(), map, own.is_some())?
    } else {
        may_set_keys(context.who(), map, own.is_some())?
    }
    let session = context.session();
    let info = session.client_info(own.map(|own| session.subscription(own)));
    let key = match map.client_key {
        ClientKey::OfClient => request.key,
        ClientKey::ClientId => info.client.clone(),
        ClientKey::UserId if info.user.is_empty() => {
            return Err(CommandError::error(ErrorCode::PERMISSION_DENIED, NO_USER));
        }
        ClientKey::UserId => info.user.clone(),
    };
    let publication = if request.removed {
        Publication { key, ..Publication::default() }
    } else {
        Publication { key, data: request.data, info: Some(info), ..Publication::default() }
    };
    let step =
        CommandStep::of(change(context, &request.channel, publication, request.removed), |()| {
            Reply { publish: Some(PublishResult {}), ..Reply::default() }.into()
        })?;
    let is_done = matches!(step, CommandStep::Done(_));
    context.effects.reply.follows_own_publication = is_done && own.is_some();
    Ok(step)
}

fn change(
    context: &CommandContext<'_>,
    channel: &str,
    publication: Publication,
    removes: bool,
) -> Answer<(), ErrorCode> {
    let maps = context.node.maps();
    let outcome = if removes {
        let removal = MapRemoval { publication, ..MapRemoval::default() };
        maps.remove(channel, removal, context.now)
    } else {
        let publish = MapPublish { publication, ..MapPublish::default() };
        maps.publish(channel, publish, context.now)
    };
    outcome.map(|outcome| outcome.and_then(accepted))
}

/// A change that a check suppressed is no error.
fn accepted(outcome: Result<MapOutcome, MapRefusal>) -> Result<(), ErrorCode> {
    match outcome {
        Ok(_) => Ok(()),
        Err(MapRefusal::TooManyEntries | MapRefusal::MemoryFull) => {
            Err(ErrorCode::TOO_MANY_REQUESTS)
        }
        Err(MapRefusal::TooLarge | MapRefusal::NoStream) => Err(ErrorCode::BAD_REQUEST),
    }
}

const NO_MAP: &str = "type is not the subscription_type of the namespace";
const NO_USER: &str = "map.client_key is user_id, and the client is anonymous";
