//! `channel.*` and `rpc.*`: names of channels and of methods, rules of namespaces, and who decides about them.
//! In: values of the rows → out: the sections, and the options of `policy`.
//! Uses the options of `policy` and `proxy`. Never: their checks.
//! Changed here: the fields of the sections, which have the names of their keys. Those of a namespace are in `policy`.

use std::collections::BTreeMap;
use std::time::Duration;

use fanwire_policy::options::{DataFormat, Namespace, ProxyChoice};
use fanwire_proxy::ProxyOptions;

/// `channel.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelSection {
    /// Longest name in bytes, at least 1; longer → 107.
    pub max_length: usize,
    /// Names with this prefix need a subscription token. One character, "" = no such channels.
    pub private_prefix: String,
    /// Ends the namespace in a name. One character, "" = no namespaces in names.
    pub namespace_boundary: String,
    /// Starts the list of users in a name. One character, "" = no such lists.
    pub user_boundary: String,
    /// Between the users of such a list. One character, "" = one user only.
    pub user_separator: String,
    /// How long offset and epoch of a channel are kept after the last publication or reader, where a namespace has no
    /// value;
    /// whole seconds, zero = for ever.
    pub history_meta_ttl: Duration,
    /// Approximate bytes of all histories together; above it publications are evicted.
    pub history_memory_max: usize,
    /// Format of publications where a namespace has none.
    pub publication_data_format: DataFormat,
    /// Rules for names without a namespace; its `name` is not used.
    pub without_namespace: Namespace,
    pub namespaces: Vec<Namespace>,
    pub proxy: ChannelProxies,
}

/// `channel.proxy.*`: the event proxies that namespaces call `default`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelProxies {
    pub subscribe: ProxyOptions,
    pub publish: ProxyOptions,
    pub sub_refresh: ProxyOptions,
    pub subscribe_stream: ProxyOptions,
    pub shared_poll_refresh: ProxyOptions,
    pub map_publish: ProxyOptions,
    pub map_remove: ProxyOptions,
}

/// `rpc.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RpcSection {
    /// A method that the server answers with an empty result.
    pub ping: PingOptions,
    /// The method as which messages of the `send` command reach hooks and proxies. "" = clients may not send.
    pub send_method: String,
    /// Ends the namespace in the name of a method. "" = no namespaces in names.
    pub namespace_boundary: String,
    /// The proxy of methods without a namespace.
    pub without_namespace: ProxyChoice,
    /// The proxies of the others by namespace.
    pub namespaces: BTreeMap<String, ProxyChoice>,
    /// The event proxy that namespaces call `default`.
    pub proxy: ProxyOptions,
}

/// `rpc.ping.*`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingOptions {
    pub enabled: bool,
    pub method: String,
}

impl From<&ChannelSection> for fanwire_policy::options::ChannelOptions {
    fn from(channel: &ChannelSection) -> Self {
        Self {
            max_length: channel.max_length,
            private_prefix: channel.private_prefix.clone(),
            namespace_boundary: channel.namespace_boundary.clone(),
            user_boundary: channel.user_boundary.clone(),
            user_separator: channel.user_separator.clone(),
            history_meta_ttl: channel.history_meta_ttl,
            history_memory_max: channel.history_memory_max,
            publication_data_format: channel.publication_data_format,
            without_namespace: channel.without_namespace.clone(),
            namespaces: channel.namespaces.clone(),
        }
    }
}

impl From<&RpcSection> for fanwire_policy::options::RpcOptions {
    fn from(rpc: &RpcSection) -> Self {
        Self {
            ping: rpc.ping.enabled,
            ping_method: rpc.ping.method.clone(),
            send_method: rpc.send_method.clone(),
            namespace_boundary: rpc.namespace_boundary.clone(),
            without_namespace: rpc.without_namespace.clone(),
            namespaces: rpc.namespaces.clone(),
        }
    }
}
