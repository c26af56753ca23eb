//! Options of namespaces that no client can use, for example presence without a permission to ask for it.
//! In: a filled `Config` → out: a severity, the full key and a sentence for each.
//! Uses the permissions of namespaces. Never: a channel, a client.
//! `policy::channel::permission` checks a command; a combination of options without effect is added here.

use fanwire_policy::options::{DataFormat, Namespace};

use super::{Config, Severity};
use crate::keys::{NAMESPACES, WITHOUT_NAMESPACE};
use crate::options::EngineKind;

/// Notes where a token or the server API can still use the option, warnings where nothing can.
pub(super) fn contradict(config: &Config) -> Vec<(Severity, String, String)> {
    // Every permission passes.
    if config.client.insecure {
        return Vec::new();
    }
    let channel = &config.channel;
    let without = &channel.without_namespace;
    let mut found: Vec<_> = formats(config).into_iter().collect();
    found.extend(members(config, WITHOUT_NAMESPACE, without));
    found.extend(history(config, WITHOUT_NAMESPACE, without));
    for namespace in &channel.namespaces {
        let at = format!("{NAMESPACES}[{}]", namespace.name);
        found.extend(subscribe(config, &at, namespace));
        found.extend(publish(config, &at, namespace));
        found.extend(members(config, &at, namespace));
        found.extend(history(config, &at, namespace));
    }
    found
}

type RuleResult = Option<(Severity, String, String)>;

fn subscribe(config: &Config, at: &str, namespace: &Namespace) -> RuleResult {
    let personal = &config.client.subscribe_to_user_personal_channel;
    let is_personal = personal.enabled && personal.personal_channel_namespace == namespace.name;
    let is_asked = namespace.subscribe_proxy.enabled || namespace.subscribe_stream_proxy.enabled;
    let is_open =
        is_asked || namespace.allow_subscribe_for_client || namespace.allow_user_limited_channels;
    if is_open || is_personal {
        return None;
    }
    let key = format!("{at}.allow_subscribe_for_client");
    if has_token_keys(config) || has_api(config) || config.client.proxy.connect.is_some() {
        let reason = format!(
            "{key} is false, so clients are refused with 103, except with a subscription token; connection tokens and the \
             server API can subscribe them, too. Set it to true if clients may subscribe without that"
        );
        return Some((Severity::Note, key, reason));
    }
    let reason = format!(
        "{key} is false, and there are neither tokens, personal channels nor a server API that subscribe clients, so no \
         client can be in such a channel; set it to true, or leave out the namespace"
    );
    Some((Severity::Warning, key, reason))
}

fn publish(config: &Config, at: &str, namespace: &Namespace) -> RuleResult {
    let is_asked = namespace.publish_proxy.enabled || namespace.subscribe_stream_proxy.enabled;
    let is_open =
        is_asked || namespace.allow_publish_for_client || namespace.allow_publish_for_subscriber;
    if is_open || has_api(config) {
        return None;
    }
    let key = format!("{at}.allow_publish_for_subscriber");
    let reason = format!(
        "{key} is false, as is allow_publish_for_client, and http_api.disabled is true, so nothing can publish there; set \
         one of the permissions to true, or http_api.disabled to false"
    );
    Some((Severity::Warning, key, reason))
}

/// Namespaces into which any client may publish what ends those of JSON; one note for all of them.
fn formats(config: &Config) -> RuleResult {
    let channel = &config.channel;
    let may_publish =
        |one: &&Namespace| one.allow_publish_for_client || one.allow_publish_for_subscriber;
    let is_unset = |one: &&Namespace| one.publication_data_format == DataFormat::Unset;
    let all = std::iter::once(&channel.without_namespace).chain(&channel.namespaces);
    let open: Vec<_> = all.filter(may_publish).filter(is_unset).map(|one| &one.name).collect();
    if open.is_empty() || channel.publication_data_format != DataFormat::Unset {
        return None;
    }
    let key = "channel.publication_data_format".to_owned();
    let reason = format!(
        "{key} is empty, so clients with Protobuf may publish bytes that are no JSON into {open:?}, and these end subscribers with \
         JSON for good (3506); set it to json if clients with JSON subscribe there"
    );
    Some((Severity::Note, key, reason))
}

/// Permissions for what the namespace does not keep, and more history than a client can recover.
fn history(config: &Config, at: &str, namespace: &Namespace) -> Vec<(Severity, String, String)> {
    let has_history = namespace.history_size > 0 && !namespace.history_ttl.is_zero();
    // These permissions also decide who gets joins and leaves.
    let has_members = namespace.presence || namespace.join_leave;
    let idle = [
        (
            "allow_history_for_client",
            namespace.allow_history_for_client,
            has_history,
            "history_size",
        ),
        (
            "allow_history_for_subscriber",
            namespace.allow_history_for_subscriber,
            has_history,
            "history_size",
        ),
        ("allow_presence_for_client", namespace.allow_presence_for_client, has_members, "presence"),
        (
            "allow_presence_for_subscriber",
            namespace.allow_presence_for_subscriber,
            has_members,
            "presence",
        ),
    ]
    .into_iter()
    .filter(|(_, is_allowed, is_kept, _)| *is_allowed && !is_kept);
    let mut found: Vec<_> = idle
        .map(|(key, _, _, kept)| {
            let reason =
                format!("{at}.{key} is true, but without {at}.{kept} there is nothing to read");
            (Severity::Note, format!("{at}.{key}"), reason)
        })
        .collect();
    let limit = config.client.recovery_max_publication_limit;
    if has_history && limit > 0 && namespace.history_size > limit {
        let key = format!("{at}.history_size");
        let reason = format!(
            "{key} is {}, but a client that missed more than client.recovery_max_publication_limit ({limit}) is not recovered, \
             and client.history_max_publication_limit ends a page of history; raise both, or keep less",
            namespace.history_size
        );
        found.push((Severity::Note, key, reason));
    }
    found
}

/// Presence, joins and leaves.
fn members(config: &Config, at: &str, namespace: &Namespace) -> Vec<(Severity, String, String)> {
    let is_visible = namespace.allow_presence_for_client || namespace.allow_presence_for_subscriber;
    let mut found = Vec::new();
    if namespace.presence && !is_visible {
        let (severity, readers) = if has_api(config) {
            (Severity::Note, "only the server API can read it")
        } else {
            (Severity::Warning, "there is no server API, so nothing can read it")
        };
        let reason = format!(
            "{at}.presence is true, but clients may not ask for it, and {readers}; set {at}.allow_presence_for_subscriber or \
             {at}.allow_presence_for_client to true, or presence to false"
        );
        found.push((severity, format!("{at}.presence"), reason));
    }
    if namespace.join_leave && !namespace.force_push_join_leave && !is_visible {
        let reason = format!(
            "{at}.join_leave is true, but no client receives joins and leaves, because they are for subscribers that ask for \
             them and may see presence; set {at}.force_push_join_leave or {at}.allow_presence_for_subscriber to true"
        );
        found.push((Severity::Warning, format!("{at}.join_leave"), reason));
    }
    if namespace.force_push_join_leave && !namespace.join_leave {
        let reason = format!(
            "{at}.force_push_join_leave is true, but without {at}.join_leave there are no joins and leaves to send; set \
             {at}.join_leave to true"
        );
        found.push((Severity::Warning, format!("{at}.force_push_join_leave"), reason));
    }
    found
}

/// Whether a backend can reach clients of this server; with Redis it may do so through another node.
fn has_api(config: &Config) -> bool {
    !config.http_api.disabled || config.engine.kind == EngineKind::Redis
}

/// Checks that a backend can sign tokens: a token subscribes its client even where the namespace does not permit it.
fn has_token_keys(config: &Config) -> bool {
    let client = &config.client;
    let own = &client.subscription_token;
    let verifiers = [Some(&client.token), own.enabled.then_some(own)];
    let keys = verifiers.into_iter().flatten().flat_map(|token| {
        [
            &*token.hmac_secret_key,
            &token.rsa_public_key,
            &token.ecdsa_public_key,
            &token.jwks_public_endpoint,
        ]
    });
    client.insecure_skip_token_signature_verify || keys.into_iter().any(|key| !key.is_empty())
}

#[cfg(test)]
mod tests;
