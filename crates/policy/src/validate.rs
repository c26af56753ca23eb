//! The checks behind `Options::validate`: one function per section of the configuration.
//! In: plain options → out: every `OptionsError`, each named by its full key.
//! May use: the constructors of `channel` and `fanwire_auth`, which prove patterns and keys by building from them. Never a clock.
//! Changed here: ranges; name and pattern checks live in `channel.rs`, key checks in `fanwire_auth`.

use std::time::Duration;

use fanwire_auth::{OptionsError, Verifier};

use crate::channel::{self, ChannelRules};
use crate::options::{
    ChannelOptions, ClientOptions, ConnectCodeTransform, Options, PersonalChannelOptions,
    REASON_BYTES_MAX, RpcOptions,
};

impl Options {
    /// Checks everything that types cannot: limits, names, patterns and keys.
    ///
    /// # Errors
    /// The first of [`mistakes`](Self::mistakes).
    pub fn validate(&self) -> Result<(), OptionsError> {
        self.mistakes().into_iter().next().map_or(Ok(()), Err)
    }

    /// Every wrong value, with its key and what would be right. Secrets are never part of it.
    pub fn mistakes(&self) -> Vec<OptionsError> {
        let personal = &self.client.subscribe_to_user_personal_channel;
        let mut mistakes = client(&self.client);
        mistakes.extend(ChannelRules::mistakes(&self.channel));
        mistakes.extend(personal_channel(personal, &self.channel).err());
        mistakes.extend(rpc(&self.rpc).err());
        mistakes.extend(expire_interval(self).err());
        mistakes.extend(channel::missing_secret(self));
        mistakes
    }
}

fn client(client: &ClientOptions) -> Vec<OptionsError> {
    let checks = [
        pong_timeout(client),
        presence_update_interval(client),
        presence_ttl(client),
        at_least_one("client.channel_limit", client.channel_limit),
        at_least_one("client.queue_max_size", client.queue_max_size),
        client.command_rate.check("client.rate_limit.client_command."),
        client.refusal_rate.check("client.rate_limit.refusal."),
    ];
    let mut mistakes: Vec<_> = checks.into_iter().filter_map(Result::err).collect();
    mistakes.extend(connect_codes(client).err());
    mistakes.extend(Verifier::mistakes(&client.token, "client.token"));
    if let Some(token) = &client.subscription_token {
        mistakes.extend(Verifier::mistakes(token, "client.subscription_token"));
    }
    mistakes
}

/// The codes of errors, and of disconnects that clients understand as such.
fn connect_codes(client: &ClientOptions) -> Result<(), OptionsError> {
    const KEY: &str = "client.connect_code_to_unidirectional_disconnect.transforms";
    for ConnectCodeTransform { code, to } in &client.connect_code_to_unidirectional_disconnect {
        if *code == 0 {
            return Err(OptionsError::value(KEY, "code: 0", "codes of errors, which are above 0"));
        }
        if !(3000..=4999).contains(&to.code) {
            let given = format!("to.code: {}", to.code);
            return Err(OptionsError::value(KEY, given, "codes of disconnects, 3000 to 4999"));
        }
        if to.reason.len() > REASON_BYTES_MAX {
            let given = format!("to.reason: {}", to.reason);
            return Err(OptionsError::value(KEY, given, "reasons of at most 123 bytes"));
        }
    }
    Ok(())
}

fn pong_timeout(client: &ClientOptions) -> Result<(), OptionsError> {
    if client.pong_timeout < client.ping_interval {
        return Ok(());
    }
    Err(OptionsError::value(
        "client.pong_timeout",
        format_args!("{:?}", client.pong_timeout),
        format!("less than client.ping_interval ({:?})", client.ping_interval),
    ))
}

fn presence_update_interval(client: &ClientOptions) -> Result<(), OptionsError> {
    let interval = client.presence_update_interval;
    if interval >= PRESENCE_UPDATE_INTERVAL_MIN {
        return Ok(());
    }
    Err(OptionsError::value(
        "client.presence_update_interval",
        format_args!("{interval:?}"),
        format!("at least {PRESENCE_UPDATE_INTERVAL_MIN:?}"),
    ))
}

/// Members that are not renewed in time would come and go.
fn presence_ttl(client: &ClientOptions) -> Result<(), OptionsError> {
    let interval = client.presence_update_interval;
    let ttl = client.presence_ttl;
    if ttl > interval {
        return Ok(());
    }
    Err(OptionsError::value(
        "client.presence_ttl",
        format_args!("{ttl:?}"),
        format!("more than client.presence_update_interval ({interval:?})"),
    ))
}

/// Users who are recorded less often than that would be unknown in between.
fn expire_interval(options: &Options) -> Result<(), OptionsError> {
    let (interval, end) =
        (options.client.presence_update_interval, options.user_status.expire_interval);
    if !options.user_status.enabled || end > interval {
        return Ok(());
    }
    Err(OptionsError::value(
        "user_status.expire_interval",
        format_args!("{end:?}"),
        format!("more than client.presence_update_interval ({interval:?})"),
    ))
}

/// Every renewal of every connection is work for its shard.
const PRESENCE_UPDATE_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// A personal channel must have a namespace that exists, and a name that is more than the user's id.
fn personal_channel(
    personal: &PersonalChannelOptions,
    channel: &ChannelOptions,
) -> Result<(), OptionsError> {
    let name = personal.personal_channel_namespace.as_str();
    if !personal.enabled {
        return Ok(());
    }
    if channel.user_boundary.is_empty() {
        let expected = "one character, for client.subscribe_to_user_personal_channel.enabled";
        return Err(OptionsError::value("channel.user_boundary", "", expected));
    }
    let is_known = channel.namespaces.iter().any(|namespace| namespace.name == name);
    if name.is_empty() || (is_known && !channel.namespace_boundary.is_empty()) {
        return Ok(());
    }
    Err(OptionsError::value(
        "client.subscribe_to_user_personal_channel.personal_channel_namespace",
        name,
        "the name of one of channel.namespaces, or \"\" for none",
    ))
}

fn rpc(rpc: &RpcOptions) -> Result<(), OptionsError> {
    if rpc.ping && rpc.ping_method.is_empty() {
        return Err(OptionsError::value("rpc.ping.method", "", "the name of a method"));
    }
    Ok(())
}

fn at_least_one(key: &str, value: usize) -> Result<(), OptionsError> {
    if value == 0 {
        return Err(OptionsError::value(key, value, "at least 1"));
    }
    Ok(())
}
