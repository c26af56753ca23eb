//! Channel names: namespaces, private prefix, user lists and what a name may look like (Centrifugo v6 `channel.*`).
//! In: `ChannelOptions`, then names → out: the namespace with its rules, or the error code of the reply.
//! May use: regex, fanwire-protocol (codes). Never allocates per name, never knows connections or subscriptions.
//! Changed here: how names are read; who may do what is in `channel/permission.rs`, defaults are in `options.rs`.

mod build;
mod history;
mod maps;
mod permission;
mod personal;
mod shared_poll;

use fanwire_protocol::ErrorCode;
use hashbrown::HashMap;
use regex::Regex;

use self::personal::Personal;
use crate::options::{ChannelOptions, Namespace};
use crate::tiles::is_tile;

pub use build::ids;
pub use permission::{
    Decider, SubscribeDecision, Who, check_data, has_presence_access, may_publish,
    may_read_history, may_remove_keys, may_see_presence, may_set_keys,
};
pub use personal::NamesOthers;
pub(crate) use shared_poll::missing_secret;

/// The rules of all channels, compiled once; shared by every connection.
#[derive(Debug)]
pub struct ChannelRules {
    length_max: usize,
    private_prefix: Option<char>,
    namespace_boundary: Option<char>,
    user_boundary: Option<char>,
    user_separator: Option<char>,
    without_namespace: NamespaceRules,
    namespaces: HashMap<String, NamespaceRules>,
    /// `None`: personal channels are off.
    personal: Option<Personal>,
}

/// Identifies a namespace while the node runs: 0 is for channels without one, then those of `ChannelOptions::namespaces` at
/// the start, in order, then those that reloads added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NamespaceId(pub u16);

impl NamespaceId {
    /// All namespaces with their options, in the order of their ids.
    pub fn all(options: &ChannelOptions) -> impl Iterator<Item = &Namespace> {
        std::iter::once(&options.without_namespace).chain(&options.namespaces)
    }

    /// How many ids there are for a node that starts with these options, those of namespaces that reloads add included.
    pub fn count(options: &ChannelOptions) -> usize {
        (1 + options.namespaces.len() + ADDED_NAMESPACES_MAX).min(usize::from(u16::MAX))
    }
}

/// Namespaces that reloads can add until the next restart. Tables by namespace have a row for each from the start.
const ADDED_NAMESPACES_MAX: usize = 256;

/// The rules of the channels of one namespace.
#[derive(Debug)]
pub struct NamespaceRules {
    pub id: NamespaceId,
    pub namespace: Namespace,
    channel_regex: Option<Regex>,
}

/// The parts of a channel name.
struct Name<'a> {
    /// "" = none.
    namespace: &'a str,
    /// The part that `channel_regex` must match: the part after the namespace, or the whole name (prefix included)
    /// without one.
    rest: &'a str,
}

impl ChannelRules {
    /// Whether the name is not empty and at most `channel.max_length` bytes long; otherwise error 107.
    pub fn fits(&self, channel: &str) -> bool {
        (1..=self.length_max).contains(&channel.len())
    }

    /// The rules for this name; their `publication_data_format` is the one of the namespace or else the global one.
    ///
    /// # Errors
    /// In this order: 107 when the name does not [fit](Self::fits), 102 when its namespace is unknown, 107 when the
    /// part after the namespace does not match `channel_regex` or, without a pattern, the name is not ASCII.
    pub fn resolve(&self, channel: &str) -> Result<&Namespace, ErrorCode> {
        if !self.fits(channel) {
            return Err(ErrorCode::BAD_REQUEST);
        }
        let name = self.split(channel);
        let rules = self.rules(name.namespace).ok_or(ErrorCode::UNKNOWN_CHANNEL)?;
        let valid = match &rules.channel_regex {
            Some(regex) => regex.is_match(name.rest) && !is_tile(channel),
            None => channel.is_ascii(),
        };
        if valid { Ok(&rules.namespace) } else { Err(ErrorCode::BAD_REQUEST) }
    }

    /// The name before the boundary, whether such a namespace exists or not; "" without one.
    pub fn namespace_name<'a>(&self, channel: &'a str) -> &'a str {
        self.split(channel).namespace
    }

    /// The namespace of a name; that of channels without one when it is unknown.
    pub fn namespace_id(&self, channel: &str) -> NamespaceId {
        self.rules(self.split(channel).namespace)
            .map_or_else(NamespaceId::default, |rules| rules.id)
    }

    /// Whether the name starts with `channel.private_prefix`: clients need a subscription token.
    pub fn is_private(&self, channel: &str) -> bool {
        self.private_prefix.is_some_and(|prefix| channel.starts_with(prefix))
    }

    /// The only users that may subscribe (`dialog#42,43`: those after the last boundary); `None` when the channel is
    /// not limited to users. Empty entries are left out, so the anonymous user is on no list.
    pub fn allowed_users<'a>(
        &self,
        channel: &'a str,
        namespace: &Namespace,
    ) -> Option<impl Iterator<Item = &'a str> + use<'a>> {
        if !namespace.allow_user_limited_channels {
            return None;
        }
        let (_, users) = channel.rsplit_once(self.user_boundary?)?;
        let separator = self.user_separator;
        let users = users.split(move |c| Some(c) == separator);
        Some(users.filter(|user| !user.is_empty()))
    }

    fn split<'a>(&self, channel: &'a str) -> Name<'a> {
        let stripped = self.private_prefix.and_then(|prefix| channel.strip_prefix(prefix));
        let boundary = self.namespace_boundary;
        match boundary.and_then(|boundary| stripped.unwrap_or(channel).split_once(boundary)) {
            Some((namespace, rest)) => Name { namespace, rest },
            None => Name { namespace: "", rest: channel },
        }
    }

    fn rules(&self, namespace: &str) -> Option<&NamespaceRules> {
        if namespace.is_empty() {
            return Some(&self.without_namespace);
        }
        self.namespaces.get(namespace)
    }
}

#[cfg(test)]
mod tests;
