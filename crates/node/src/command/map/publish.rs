//! The `publish` command for map channels: a client sets or removes a key (protocol §27).
//! In: a PublishRequest with a key → out: an empty result, also when a check of the engine suppressed the change, or an error.
//! Uses: channel rules, hooks of event proxies, the node's maps. Never: delivers by itself.
//! Changed here: which key a client changes, and the order of the checks. Checks of the change are in the engine.

use bytes::Bytes;
use fanwire_broker::Answer;
use fanwire_broker::map::{MapError, MapOutcome, MapPublish, MapRemoval};
use fanwire_policy::InNamespace;
use fanwire_policy::channel::{check_data, may_remove_keys, may_set_keys};
use fanwire_policy::hooks::{CommandDecision, MapEvent, MapGrant, PublishEvent, Rejection};
use fanwire_policy::options::{ClientKey, MapOptions, ProxyRoute, SubscriptionType};
use fanwire_protocol::{ClientInfo, ErrorCode, Publication, PublishRequest, PublishResult, Reply};

use crate::command::hook::{HookDecision, RoutedHook};
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
    if !request.removed {
        check_data(namespace.publication_data_format, &request.data)?;
    }
    let own = context.subscription_to(&request.channel);
    let session = context.session();
    let info = session.client_info(own.map(|own| session.subscription(own)));
    let command = MapCommand { map: &namespace.map, info, is_subscribed: own.is_some(), request };
    let change = if command.request.removed {
        removal(context, &command)?
    } else {
        publish(context, &command)?
    };
    let outcome = match change {
        MapChangeStep::Asked(answer) => return Ok(CommandStep::Ask(answer)),
        MapChangeStep::Made(outcome) => outcome,
    };
    let step = CommandStep::of(outcome.map(|outcome| outcome.and_then(accepted)), |()| {
        Reply { publish: Some(PublishResult {}), ..Reply::default() }.into()
    })?;
    let is_done = matches!(step, CommandStep::Done(_));
    context.effects.reply.follows_own_publication = is_done && own.is_some();
    Ok(step)
}

/// A command, and the client that sent it.
struct MapCommand<'a> {
    map: &'a MapOptions,
    info: ClientInfo,
    is_subscribed: bool,
    request: PublishRequest,
}

impl MapCommand<'_> {
    fn event(&self, context: &CommandContext<'_>) -> MapEvent {
        let request = &self.request;
        let facts = context.session().context();
        let data = if request.removed { Bytes::new() } else { request.data.clone() };
        let command = PublishEvent::new(self.info.clone(), facts, request.channel.clone(), data);
        MapEvent::new(command, request.key.clone())
    }

    /// The key that a client with permission changes.
    fn key(&self) -> Result<String, CommandError> {
        match self.map.client_key {
            ClientKey::OfClient => Ok(self.request.key.clone()),
            ClientKey::ClientId => Ok(self.info.client.clone()),
            ClientKey::UserId if self.info.user.is_empty() => {
                Err(CommandError::error(ErrorCode::PERMISSION_DENIED, NO_USER))
            }
            ClientKey::UserId => Ok(self.info.user.clone()),
        }
    }
}

/// The state of a command that passed its checks.
enum MapChangeStep {
    /// A hook was asked.
    Asked(Answer<CommandDecision, Rejection>),
    /// The engine was asked.
    Made(Answer<Result<MapOutcome, MapError>, ErrorCode>),
}

fn publish(
    context: &mut CommandContext<'_>,
    command: &MapCommand<'_>,
) -> Result<MapChangeStep, CommandError> {
    let route = ProxyRoute::from(&command.map.publish_proxy);
    let hook = context.node.hooks().map_publish.as_ref().filter(|hook| hook.applies(&route));
    let decision = context.ask(
        hook.map(|hook| RoutedHook { hook, route }),
        |context| command.event(context),
        CommandDecision::of_map,
        CommandDecision::into_map,
    )?;
    let grant = match decision {
        HookDecision::Pending(answer) => return Ok(MapChangeStep::Asked(answer)),
        HookDecision::Made(Some(grant)) => grant,
        HookDecision::Made(None) => {
            may_set_keys(context.who(), command.map, command.is_subscribed)?;
            MapGrant { key: Some(command.key()?), ..MapGrant::default() }
        }
    };
    let publication = Publication {
        key: grant.key.unwrap_or_else(|| command.request.key.clone()),
        data: grant.data.unwrap_or_else(|| command.request.data.clone()),
        tags: grant.tags,
        info: Some(command.info.clone()),
        ..Publication::default()
    };
    let publish = MapPublish {
        publication,
        idempotency_key: grant.idempotency_key,
        version: grant.version,
        version_epoch: grant.version_epoch,
        key_mode: grant.key_mode,
        expected: grant.expected,
        delta: grant.delta,
    };
    let maps = context.node.maps();
    Ok(MapChangeStep::Made(maps.publish(&command.request.channel, publish, context.now)))
}

fn removal(
    context: &mut CommandContext<'_>,
    command: &MapCommand<'_>,
) -> Result<MapChangeStep, CommandError> {
    let route = ProxyRoute::from(&command.map.remove_proxy);
    let hook = context.node.hooks().map_remove.as_ref().filter(|hook| hook.applies(&route));
    let decision = context.ask(
        hook.map(|hook| RoutedHook { hook, route }),
        |context| command.event(context),
        CommandDecision::of_map,
        CommandDecision::into_map,
    )?;
    let grant = match decision {
        HookDecision::Pending(answer) => return Ok(MapChangeStep::Asked(answer)),
        HookDecision::Made(Some(grant)) => grant,
        HookDecision::Made(None) => {
            may_remove_keys(context.who(), command.map, command.is_subscribed)?;
            MapGrant { key: Some(command.key()?), ..MapGrant::default() }
        }
    };
    let publication = Publication {
        key: grant.key.unwrap_or_else(|| command.request.key.clone()),
        tags: grant.tags,
        ..Publication::default()
    };
    let MapGrant { idempotency_key, expected, .. } = grant;
    let removal = MapRemoval { publication, idempotency_key, expected };
    let maps = context.node.maps();
    Ok(MapChangeStep::Made(maps.remove(&command.request.channel, removal, context.now)))
}

/// A change that a check suppressed is no error.
fn accepted(outcome: Result<MapOutcome, MapError>) -> Result<(), ErrorCode> {
    match outcome {
        Ok(_) => Ok(()),
        Err(MapError::TooManyEntries | MapError::MemoryFull) => Err(ErrorCode::TOO_MANY_REQUESTS),
        Err(MapError::TooLarge | MapError::NoStream) => Err(ErrorCode::BAD_REQUEST),
    }
}

const NO_MAP: &str = "type is not the subscription_type of the namespace";
const NO_USER: &str = "map.client_key is user_id, and the client is anonymous";
