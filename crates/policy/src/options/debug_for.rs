//! Users, channels and addresses whose events are logged (`log.debug_for`).
//! In: values from the configuration table → out: the same data.
//! May use: nothing. Never checks anything: the rules of the configuration do.
//! Changed here: which kinds of subjects there are. `debug_list.rs` compares them with connections.

/// `log.debug_for`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugForOptions {
    /// User ids.
    pub users: Vec<String>,
    /// Names of channels.
    pub channels: Vec<String>,
    /// IP addresses of clients.
    pub addresses: Vec<String>,
}

/// Subjects of a node.
pub const SUBJECTS_MAX: usize = 100;
