//! The compression policy of a channel's publications: the namespaces' `compression`, resolved once.
//! In: the channel options → out: a policy for each broadcast.
//! Uses the node's options alone; allocates nothing per broadcast.
//! Changed here: how a channel finds its policy. The default is in `node::options`.

use fanwire_node::{
    Broadcast, NamespaceId,
    options::{ChannelOptions, CompressionPolicy},
};

/// The policy of every namespace, for its public and its private channels.
#[derive(Debug)]
pub struct Policies {
    private_prefix: String,
    /// By namespace: (public, private).
    rows: Box<[(CompressionPolicy, CompressionPolicy)]>,
}

impl Policies {
    pub fn new(options: &ChannelOptions) -> Self {
        let rows = NamespaceId::all(options).map(|namespace| {
            (namespace.compression_policy(false), namespace.compression_policy(true))
        });
        Self { private_prefix: options.private_prefix.clone(), rows: rows.collect() }
    }

    /// Number of namespaces, including the one of channels without a namespace.
    pub fn namespaces(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn of(&self, broadcast: &Broadcast) -> CompressionPolicy {
        let (public, private) = self.rows[usize::from(broadcast.namespace().0)];
        let prefix = self.private_prefix.as_str();
        let is_private = !prefix.is_empty() && broadcast.channel().starts_with(prefix);
        if is_private { private } else { public }
    }
}
