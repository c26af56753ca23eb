//! Permissions to subscribe, publish, read history and presence, as in Centrifugo v6; formats of data (protocol §16).
//! In: the requesting user, the namespace, the name → out: a decision or the error code of the reply.
//! May use: fanwire-protocol. Pure functions; never looks into tokens or at the state of a connection.
//! Changed here: order of the rules; `channel.rs` parses names, `fanwire_auth` checks tokens.

use fanwire_protocol::{ErrorCode, is_json, is_json_object, nests_too_deep};

use super::ChannelRules;
use crate::options::{DataFormat, MapOptions, Namespace};

/// The requesting user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who<'a> {
    /// User id of the connection; "" = anonymous.
    pub user: &'a str,
    /// `client.insecure`: every permission of a namespace passes.
    pub insecure: bool,
}

/// The decision about a subscribe request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscribeDecision {
    /// Permitted.
    Allowed,
    /// The request carries a token and that alone decides (`Verifier::verify_subscription`).
    VerifyToken,
    /// The hook decides. What it does not decide is asked again with [`Decider::Rules`].
    AskHook,
    /// Reply with this error.
    Denied(ErrorCode),
}

/// The authority that decides about a subscribe before the permissions of the namespace do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// The request carries a token.
    Token,
    /// A hook applies to the namespace and has not been asked.
    Hook,
    /// Nothing.
    Rules,
}

impl ChannelRules {
    /// Decides a subscribe request, or a read without a subscription, as far as possible without its token. `namespace` is the
    /// result of [`resolve`](Self::resolve) for `channel`.
    ///
    /// The first rule that matches decides: a token is verified; a private name without one is denied; a user list
    /// allows its users; a hook is asked;
    /// else the namespace's permission; `insecure`; 103.
    pub fn may_subscribe(
        &self,
        who: Who<'_>,
        channel: &str,
        namespace: &Namespace,
        decider: Decider,
    ) -> SubscribeDecision {
        if decider == Decider::Token {
            return SubscribeDecision::VerifyToken;
        }
        if self.is_private(channel) {
            return SubscribeDecision::Denied(ErrorCode::PERMISSION_DENIED);
        }
        let granted = match self.allowed_users(channel, namespace) {
            Some(mut users) => users.any(|user| user == who.user),
            None if decider == Decider::Hook => return SubscribeDecision::AskHook,
            None => {
                namespace.allow_subscribe_for_client
                    && who.passes(namespace.allow_subscribe_for_anonymous)
            }
        };
        if granted || who.insecure {
            return SubscribeDecision::Allowed;
        }
        SubscribeDecision::Denied(ErrorCode::PERMISSION_DENIED)
    }

    /// Which rule denied a subscribe request without a token, for the log.
    pub fn why_denied(&self, who: Who<'_>, channel: &str, namespace: &Namespace) -> &'static str {
        if self.is_private(channel) {
            "a channel with channel.private_prefix needs a subscription token"
        } else if self.allowed_users(channel, namespace).is_some() {
            "the name of the channel does not list the user"
        } else if namespace.allow_subscribe_for_client && who.user.is_empty() {
            "the user is anonymous, and allow_subscribe_for_anonymous of the namespace is off"
        } else {
            "allow_subscribe_for_client of the namespace is off, and the client sent no subscription token"
        }
    }
}

/// Whether a client may publish into a channel of this namespace; `subscribed` = it is subscribed to that channel.
///
/// # Errors
/// 103.
pub fn may_publish(who: Who<'_>, namespace: &Namespace, subscribed: bool) -> Result<(), ErrorCode> {
    let for_role = namespace.allow_publish_for_client
        || (namespace.allow_publish_for_subscriber && subscribed);
    who.permitted(for_role && who.passes(namespace.allow_publish_for_anonymous))
}

/// Whether a client may set keys of a map; `subscribed` = it is subscribed to that channel.
///
/// # Errors
/// 103.
pub fn may_set_keys(who: Who<'_>, map: &MapOptions, subscribed: bool) -> Result<(), ErrorCode> {
    let for_role = map.allow_publish_for_client || (map.allow_publish_for_subscriber && subscribed);
    who.permitted(for_role && who.passes(map.allow_publish_for_anonymous))
}

/// Whether a client may remove keys of a map; `subscribed` = it is subscribed to that channel.
///
/// # Errors
/// 103.
pub fn may_remove_keys(who: Who<'_>, map: &MapOptions, subscribed: bool) -> Result<(), ErrorCode> {
    let for_role = map.allow_remove_for_client || (map.allow_remove_for_subscriber && subscribed);
    who.permitted(for_role && who.passes(map.allow_remove_for_anonymous))
}

/// Whether a client may read the history of a channel of this namespace; `subscribed` = it is subscribed to that channel.
///
/// # Errors
/// 108 where there is no history, else 103.
pub fn may_read_history(
    who: Who<'_>,
    namespace: &Namespace,
    subscribed: bool,
) -> Result<(), ErrorCode> {
    if !namespace.retention().keeps_history() {
        return Err(ErrorCode::NOT_AVAILABLE);
    }
    let for_role = namespace.allow_history_for_client
        || (namespace.allow_history_for_subscriber && subscribed);
    if for_role && who.passes(namespace.allow_history_for_anonymous) || who.insecure {
        return Ok(());
    }
    Err(ErrorCode::PERMISSION_DENIED)
}

/// Whether a client may see who is present in a channel of this namespace; `subscribed` = it is subscribed to that channel.
///
/// # Errors
/// 108 where there is no presence, else 103.
pub fn may_see_presence(
    who: Who<'_>,
    namespace: &Namespace,
    subscribed: bool,
) -> Result<(), ErrorCode> {
    if !namespace.presence {
        return Err(ErrorCode::NOT_AVAILABLE);
    }
    if has_presence_access(who, namespace, subscribed) {
        return Ok(());
    }
    Err(ErrorCode::PERMISSION_DENIED)
}

/// Whether a client may see the members of a channel, by presence or by joins and leaves, if the namespace has them.
pub fn has_presence_access(who: Who<'_>, namespace: &Namespace, subscribed: bool) -> bool {
    let for_role = namespace.allow_presence_for_client
        || (namespace.allow_presence_for_subscriber && subscribed);
    for_role && who.passes(namespace.allow_presence_for_anonymous) || who.insecure
}

/// Checks the format of publication data. A namespace from [`ChannelRules::resolve`] has the global format filled in. JSON
/// may not be nested deeper than clients can read it, except where any bytes are wanted.
///
/// # Errors
/// 107.
pub fn check_data(format: DataFormat, data: &[u8]) -> Result<(), ErrorCode> {
    let valid = match format {
        DataFormat::Unset => !(data.is_empty() || nests_too_deep(data) && is_json(data)),
        DataFormat::Json => is_json(data) && !nests_too_deep(data),
        DataFormat::JsonObject => is_json_object(data) && !nests_too_deep(data),
        DataFormat::Binary => true,
    };
    if valid { Ok(()) } else { Err(ErrorCode::BAD_REQUEST) }
}

impl Who<'_> {
    /// Whether a permission was granted, or none is needed.
    fn permitted(self, is_granted: bool) -> Result<(), ErrorCode> {
        if is_granted || self.insecure { Ok(()) } else { Err(ErrorCode::PERMISSION_DENIED) }
    }

    /// A permission of authenticated users, extended to user "" where the namespace says so.
    fn passes(self, for_anonymous: bool) -> bool {
        !self.user.is_empty() || for_anonymous
    }
}

#[cfg(test)]
mod tests;
