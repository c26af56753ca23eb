//! Commands of clients for map channels (protocol §27).
//! In: subscribes and publishes of channels whose namespace is of maps → out: their steps, as of other commands.
//! Uses: `map` for phases and reservations, the node's maps. Never: channels of streams.
//! Changed here: the list of commands.

mod live;
pub(super) mod publish;
pub(super) mod subscribe;

use fanwire_policy::options::SubscriptionType;
use fanwire_protocol::SubscribeRequest;

/// Whether a subscribe is for a map channel, by its `type`.
pub(super) fn is_meant(request: &SubscribeRequest) -> bool {
    let types = [SubscriptionType::Map, SubscriptionType::MapClients, SubscriptionType::MapUsers];
    types.iter().any(|kind| kind.wire_type() == request.r#type)
}
