//! Which settings of shared polls are valid together (Centrifugo v6 `shared_poll.*`).
//! In: one namespace, the options of the node → out: every `OptionsError`.
//! May use: the options only. Never a poll; `shared_poll/` implements it.
//! Changed here: a rule between keys; limits of single keys are in the server's config table.

use fanwire_auth::OptionsError;

use crate::options::{Namespace, Options, SubscriptionType};
use crate::shared_poll::PollMode;

/// Error: versions that are published directly, where the node counts the versions.
pub(super) fn mistakes(namespace: &Namespace, prefix_key: &str) -> Option<OptionsError> {
    let poll = &namespace.shared_poll;
    let is_wrong = poll.publish_enabled && poll.mode == PollMode::Versionless;
    let is_polled = namespace.subscription_type == SubscriptionType::SharedPoll;
    let key = format!("{prefix_key}.shared_poll.publish_enabled");
    let expected = "false, or shared_poll.mode versioned: the versions of a versionless channel are counted by each node";
    (is_polled && is_wrong).then(|| OptionsError::value(key, "true", expected))
}

/// Error: a namespace of shared polls, and no secret with which keys are signed.
pub(crate) fn missing_secret(options: &Options) -> Option<OptionsError> {
    let channel = &options.channel;
    let mut all = std::iter::once(&channel.without_namespace).chain(&channel.namespaces);
    let is_polled = |one: &Namespace| one.subscription_type == SubscriptionType::SharedPoll;
    let needs_secret = all.any(is_polled);
    let is_missing = options.shared_poll.hmac_secret_key.is_empty();
    let expected = "a secret: a namespace has subscription_type shared_poll, and the application's backend signs the keys that clients track";
    (needs_secret && is_missing)
        .then(|| OptionsError::value("shared_poll.hmac_secret_key", "", expected))
}
