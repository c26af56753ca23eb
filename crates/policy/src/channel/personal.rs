//! Personal channels (`client.subscribe_to_user_personal_channel`): one channel of the server for each user, such as `#42`.
//! In: a user id, or a name of a channel → out: the name of the user's channel, or the namespace that the name belongs to.
//! May use: the rules of namespaces. Never allocates to recognise a name, never knows connections.
//! Changed here: which users have one; the subscription is made in `command/connect.rs`.

use fanwire_protocol::ErrorCode;

use super::{ChannelRules, NamespaceRules};
use crate::options::{Namespace, PersonalChannelOptions};
use crate::tiles::is_tile;

/// The longest name that a server, its API, a token or a hook may give.
const TRUSTED_BYTES_MAX: usize = 16 << 10;

/// The prefix of personal channel names.
#[derive(Debug)]
pub(super) struct Personal {
    /// "" = none.
    namespace: String,
    /// Namespace, its boundary and the user boundary: `#` or `news:#`.
    prefix: String,
}

/// The user has no personal channel: the id contains `channel.user_boundary` or `channel.user_separator`, so the
/// channel's name would list other users, who could subscribe to it; or it contains the mark of tiles, whose channels are
/// inside of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamesOthers;

impl ChannelRules {
    /// The same rules, with personal channels where the options have them.
    pub fn with_personal(mut self, options: &PersonalChannelOptions) -> Self {
        let namespace = options.personal_channel_namespace.clone();
        let boundary = self.namespace_boundary.filter(|_| !namespace.is_empty());
        let mut prefix = namespace.clone();
        prefix.extend(boundary.into_iter().chain(self.user_boundary));
        self.personal = options.enabled.then_some(Personal { namespace, prefix });
        self
    }

    /// The name of the user's personal channel: `#42`, or `news:#42` in a namespace. `None` for the anonymous user, and where
    /// users have none.
    ///
    /// # Errors
    /// [`NamesOthers`] for an id with the user boundary or the user separator.
    pub fn personal_channel(&self, user: &str) -> Result<Option<String>, NamesOthers> {
        let Some(personal) = self.personal.as_ref().filter(|_| !user.is_empty()) else {
            return Ok(None);
        };
        let special = [self.user_boundary, self.user_separator];
        let is_special = special.into_iter().flatten().any(|character| user.contains(character));
        if is_special || is_tile(user) {
            return Err(NamesOthers);
        }
        Ok(Some(format!("{}{user}", personal.prefix)))
    }

    /// Resolves a name, as [`resolve`](Self::resolve) does, that the server, its API, a token or a hook gives:
    /// characters, `channel_regex` and `channel.max_length` are rules for clients alone, as with Centrifugo.
    ///
    /// # Errors
    /// 107 for a name that is empty, longer than [`TRUSTED_BYTES_MAX`] or that of a tile, 102 when its namespace is unknown.
    pub fn resolve_trusted(&self, channel: &str) -> Result<&Namespace, ErrorCode> {
        self.trusted_rules(channel).map(|rules| &rules.namespace)
    }

    /// The rules that [`resolve_trusted`](Self::resolve_trusted) finds, with the id of the namespace.
    ///
    /// # Errors
    /// The errors of `resolve_trusted`.
    pub fn trusted_rules(&self, channel: &str) -> Result<&NamespaceRules, ErrorCode> {
        if !(1..=TRUSTED_BYTES_MAX).contains(&channel.len()) || is_tile(channel) {
            return Err(ErrorCode::BAD_REQUEST);
        }
        match &self.personal {
            Some(personal) if channel.starts_with(&personal.prefix) => self.of(personal),
            _ => self.rules(self.split(channel).namespace).ok_or(ErrorCode::UNKNOWN_CHANNEL),
        }
    }

    /// Resolves a name, as [`resolve`](Self::resolve) does, that a client of `user` gives: its own personal channel may have any name.
    ///
    /// # Errors
    /// The errors of `resolve`.
    pub fn resolve_for(&self, user: &str, channel: &str) -> Result<&Namespace, ErrorCode> {
        match &self.personal {
            Some(personal)
                if channel.strip_prefix(&personal.prefix) == Some(user) && !is_tile(channel) =>
            {
                self.of(personal).map(|rules| &rules.namespace)
            }
            _ => self.resolve(channel),
        }
    }

    fn of(&self, personal: &Personal) -> Result<&NamespaceRules, ErrorCode> {
        self.rules(&personal.namespace).ok_or(ErrorCode::UNKNOWN_CHANNEL)
    }
}
