//! Filters of a subscription: the one of the server and the one of the client (protocol §13).
//! In: JSON of tokens and hooks, the tree of a subscribe command → out: checked filters, or the error.
//! Uses: `fanwire_policy::filter`. Never: the tables; `session_table/filters.rs` replaces a filter there.
//! Changed here: which filters are accepted, and with which errors.

use std::sync::Arc;

use fanwire_policy::filter::{Filter, SubscriptionFilter};
use fanwire_policy::options::Namespace;
use fanwire_protocol::{Disconnect, ErrorCode, SubscribeRequest};

use super::credentials::Grants;
use crate::node::is_polled;
use crate::refusal::CommandError;

/// The filter of a subscribe command, with what a token or a hook grants.
///
/// # Errors
/// 107 for the client's filter, 103 for the server's.
pub(super) fn of_subscribe(
    request: &SubscribeRequest,
    granted: &[u8],
    namespace: &Namespace,
) -> Result<Option<Arc<SubscriptionFilter>>, CommandError> {
    if request.tf.is_some() && (!namespace.allow_tags_filter || is_polled(namespace)) {
        let cause = "allow_tags_filter of the namespace is off, or its channels are shared polls";
        return Err(CommandError::error(ErrorCode::BAD_REQUEST, cause));
    }
    let invalid = |error| CommandError::error(error, "the tags filter is invalid or too large");
    let of_client = request.tf.as_ref().map(Filter::new).transpose().map_err(invalid)?;
    let refused = |error| CommandError::error(error, INVALID);
    let of_server = Filter::of_backend(granted).map_err(refused)?;
    Ok(SubscriptionFilter { of_server, of_client }.shared())
}

/// The filter of a token that refreshes a subscription.
///
/// # Errors
/// 3500 for an invalid one.
pub(super) fn of_token(granted: &[u8]) -> Result<Option<Filter>, CommandError> {
    let refused = |_| CommandError::disconnect(Disconnect::INVALID_TOKEN, INVALID);
    Filter::of_backend(granted).map_err(refused)
}

/// The filters of the subscriptions that a connection token or a connect hook grants, in their order.
///
/// # Errors
/// 3500 if one is invalid.
pub(super) fn of_grants(grants: &Grants) -> Result<Vec<Option<Filter>>, CommandError> {
    grants.values().map(|grant| of_token(&grant.server_tags_filter)).collect()
}

const INVALID: &str = "server_tags_filter of the token or the grant is no filter, or too large";
