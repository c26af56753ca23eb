//! Messages about occupied channels: announcements, and reports to the node that tells the backend (docs/decisions/0023).
//! In: channels with subscribers on a node → out: values that travel between nodes, as Protobuf.
//! Uses: prost. Never: which node reports to which; `fanwire_events` decides.
//! Change here: what nodes tell of their channels. Field numbers stay for ever.

/// An announcement (to all nodes), a report, or a request for one. A node that does not know the message ignores it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct OccupancyReport {
    /// Start of the sender in Unix milliseconds: the oldest node tells the backend.
    #[prost(uint64, tag = "1")]
    pub started_ms: u64,
    /// Counts the events about channels that the sender has made, and those that its backend has accepted.
    #[prost(uint64, tag = "2")]
    pub told: u64,
    /// Counts the reports of the sender from 1, without a gap; 0 for other messages.
    #[prost(uint64, tag = "3")]
    pub number: u64,
    /// The receiver missed a report: asks it for all of its channels.
    #[prost(bool, tag = "4")]
    pub wants_all: bool,
    /// The first part of all channels of the sender.
    #[prost(bool, tag = "5")]
    pub is_first: bool,
    /// The last part of them.
    #[prost(bool, tag = "6")]
    pub is_last: bool,
    /// Channels that have subscribers on the sender.
    #[prost(string, repeated, tag = "7")]
    pub occupied: Vec<String>,
    /// Channels that have none any more.
    #[prost(string, repeated, tag = "8")]
    pub vacant: Vec<String>,
    /// A backend has no picture: the node that tells it tells all channels again.
    #[prost(bool, tag = "9")]
    pub wants_recount: bool,
}
