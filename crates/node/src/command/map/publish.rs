//! The `publish` command for map channels: a client sets or removes a key (protocol §27).
//! In: a PublishRequest with a key → out: an empty result, also when a check of the engine suppressed the change, or an error.
//! Uses: channel rules, hooks of event proxies, the node's maps. Never: delivers by itself.
//! Changed here: which key a client changes, and the order of the checks. Checks of the change are in the engine.

use bytes::Bytes;
use fanwire_broker::Answer;
use fanwire_broker::map::{MapError, MapOutcome, MapPublish, MapRemoval};
use fanwire_policy::InNamespace;
use fanwire_policy::channel::{check_data, may_remove_keys, may_set_keys};
use fanwire_policy::hooks::{CommandDecision, MapEvent, MapGrant, PublishEvent};
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
    let decision = command.ask(context)?;
    let grant = match decision {
        HookDecision::Pending(answer) => return Ok(CommandStep::Ask(answer)),
        HookDecision::Made(Some(grant)) => grant,
        HookDecision::Made(None) => command.permitted(context)?,
    };
    let outcome = command.change(context, grant);
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
    /// Asks the hook of the change, if there is one.
    ///
    /// # Errors
    /// The rejection of the hook.
    fn ask(
        &self,
        context: &mut CommandContext<'_>,
    ) -> Result<HookDecision<MapGrant>, CommandError> {
        let removed = self.request.removed;
        let proxy = if removed { &self.map.remove_proxy } else { &self.map.publish_proxy };
        let route = ProxyRoute::from(proxy);
        let hooks = context.node.hooks();
        let of_kind = if removed { &hooks.map_remove } else { &hooks.map_publish };
        let hook = of_kind.as_ref().filter(|hook| hook.applies(&route));
        context.ask(
            hook.map(|hook| RoutedHook { hook, route }),
            |context| self.event(context),
            CommandDecision::of_map,
            CommandDecision::into_map,
        )
    }

    /// The change of a client that the options permit.
    ///
    /// # Errors
    /// 103 without permission.
    fn permitted(&self, context: &CommandContext<'_>) -> Result<MapGrant, CommandError> {
        let permission = if self.request.removed { may_remove_keys } else { may_set_keys };
        permission(context.who(), self.map, self.is_subscribed)?;
        Ok(MapGrant { key: Some(self.key()?), ..MapGrant::default() })
    }

    /// Makes the change.
    fn change(
        &self,
        context: &CommandContext<'_>,
        grant: MapGrant,
    ) -> Answer<Result<MapOutcome, MapError>, ErrorCode> {
        let request = &self.request;
        let maps = context.node.maps();
        let key = grant.key.unwrap_or_else(|| request.key.clone());
        let publication = Publication { key, tags: grant.tags, ..Publication::default() };
        let idempotency_key = grant.idempotency_key;
        let expected = grant.expected;
        if request.removed {
            let removal = MapRemoval { publication, idempotency_key, expected };
            return maps.remove(&request.channel, removal, context.now);
        }
        let publication = Publication {
            data: grant.data.unwrap_or_else(|| request.data.clone()),
            info: Some(self.info.clone()),
            ..publication
        };
        let publish = MapPublish {
            publication,
            idempotency_key,
            version: grant.version,
            version_epoch: grant.version_epoch,
            key_mode: grant.key_mode,
            expected,
            delta: grant.delta,
        };
        maps.publish(&request.channel, publish, context.now)
    }

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
