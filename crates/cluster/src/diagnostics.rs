//! The command of diagnosis: subjects whose events all nodes log.
//! In: calls of the server API → out: values that travel between nodes, as Protobuf.
//! Uses: prost. Never: lists subjects; `policy` does.
//! Change here: what the command says. Field numbers stay for ever.

/// Lists or unlists subjects whose events are logged.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct DebugForCommand {
    #[prost(string, repeated, tag = "1")]
    pub users: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub channels: Vec<String>,
    /// IP addresses.
    #[prost(string, repeated, tag = "3")]
    pub addresses: Vec<String>,
    /// Unix second at which they end; 0 = now.
    #[prost(uint64, tag = "4")]
    pub until: u64,
}

impl DebugForCommand {
    /// How many subjects it names.
    #[expect(clippy::len_without_is_empty, reason = "an empty one changes nothing")]
    pub fn len(&self) -> usize {
        self.users.len() + self.channels.len() + self.addresses.len()
    }
}
