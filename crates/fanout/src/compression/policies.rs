//! The compression policy of a channel's publications: the namespaces' `compression`.
//! In: the channel options, again after a reload → out: a policy for each broadcast.
//! Uses the node's options alone; allocates nothing per broadcast.
//! Changed here: how a channel finds its policy. The default is in `policy::options`.

use std::sync::atomic::{AtomicU8, Ordering};

use fanwire_node::{
    Broadcast, NamespaceId,
    options::{ChannelOptions, CompressionPolicy, Namespace},
};

/// The policy of every namespace, for its public and its private channels.
#[derive(Debug)]
pub struct Policies {
    private_prefix: String,
    /// Policies by namespace.
    rows: Box<[PolicyRow]>,
}

impl Policies {
    pub fn new(options: &ChannelOptions) -> Self {
        let rows = (0..NamespaceId::count(options)).map(|_| PolicyRow::default()).collect();
        let policies = Self { private_prefix: options.private_prefix.clone(), rows };
        for (id, namespace) in (0..).zip(NamespaceId::all(options)) {
            policies.set(NamespaceId(id), namespace);
        }
        policies
    }

    /// Sets the policy of a namespace for its next publications.
    ///
    /// # Panics
    /// If the node has not given out the id.
    pub fn set(&self, id: NamespaceId, namespace: &Namespace) {
        let row = &self.rows[usize::from(id.0)];
        row.public.store(namespace.compression_policy(false) as u8, Ordering::Relaxed);
        row.private.store(namespace.compression_policy(true) as u8, Ordering::Relaxed);
    }

    /// Number of ids of namespaces, including that of channels without one.
    pub fn namespaces(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn of(&self, broadcast: &Broadcast) -> CompressionPolicy {
        let row = &self.rows[usize::from(broadcast.namespace().0)];
        let prefix = self.private_prefix.as_str();
        let is_private = !prefix.is_empty() && broadcast.channel().starts_with(prefix);
        let policy = if is_private { &row.private } else { &row.public };
        policy_of(policy.load(Ordering::Relaxed))
    }
}

/// The policy of one namespace, as a number that a reload can replace.
#[derive(Debug, Default)]
struct PolicyRow {
    public: AtomicU8,
    private: AtomicU8,
}

fn policy_of(number: u8) -> CompressionPolicy {
    const ALL: [CompressionPolicy; 3] =
        [CompressionPolicy::Context, CompressionPolicy::Standalone, CompressionPolicy::Off];
    ALL.into_iter().find(|policy| *policy as u8 == number).unwrap_or_default()
}
