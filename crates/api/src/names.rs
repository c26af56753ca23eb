//! The methods of the server API by name.
//! In: a name from a path or a batch, or a number of the legacy path → out: a `Method`.
//! Pure; never parameters, results or HTTP.
//! A method is a row here, a row in `method.rs` and a file `method/NAME.rs`.

/// A method of the server API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Publish,
    Broadcast,
    Unsubscribe,
    Disconnect,
    Presence,
    PresenceStats,
    History,
    HistoryRemove,
    Channels,
    Info,
    Rpc,
    Subscribe,
    Refresh,
    Connections,
    UpdateUserStatus,
    GetUserStatus,
    DeleteUserStatus,
    BlockUser,
    UnblockUser,
    RevokeToken,
    InvalidateUserTokens,
    SetView,
    Snapshot,
    Append,
    Batch,
    ConnectionLog,
    PublicationReport,
    HotLists,
    DebugFor,
    NodeConfig,
    Dump,
    MapPublish,
    MapRemove,
    MapReadState,
    MapReadStream,
    MapStats,
    MapClear,
    SharedPollPublish,
}

impl Method {
    /// Every method, in the order of the variants.
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::Publish; TABLE.len()];
        let mut index = 0;
        while index < TABLE.len() {
            all[index] = TABLE[index].method;
            assert!(all[index] as usize == index, "the table has the order of the variants");
            index += 1;
        }
        all
    };

    /// The name in paths, batches and metrics.
    pub fn name(self) -> &'static str {
        TABLE[self.index()].name
    }

    /// The method with this exact name.
    pub fn of_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.method)
    }

    /// The method with this number on the legacy path; batch has none.
    pub fn of_legacy_number(number: u64) -> Option<Self> {
        TABLE.iter().find(|row| row.legacy_number == Some(number)).map(|row| row.method)
    }

    /// The index in `ALL`.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Whether it changes nothing.
    pub(crate) fn is_read_only(self) -> bool {
        matches!(
            self,
            Self::Presence
                | Self::PresenceStats
                | Self::History
                | Self::Channels
                | Self::Info
                | Self::Connections
                | Self::ConnectionLog
                | Self::PublicationReport
                | Self::HotLists
                | Self::NodeConfig
                | Self::Dump
                | Self::GetUserStatus
                | Self::MapReadState
                | Self::MapReadStream
                | Self::MapStats
        )
    }

    /// Whether an empty body is accepted as `{}`: for methods without required fields, except those that would then affect
    /// all anonymous connections (disconnect, unsubscribe).
    pub(crate) fn takes_empty_body(self) -> bool {
        matches!(self, Self::Info | Self::Channels)
    }
}

/// The keys of a command of a stream: `id`, and the names of all methods. A command of a batch has no `id`.
pub(crate) const COMMAND_KEYS: [&str; TABLE.len() + 1] = {
    let mut keys = ["id"; TABLE.len() + 1];
    let mut index = 0;
    while index < TABLE.len() {
        keys[index + 1] = TABLE[index].name;
        index += 1;
    }
    keys
};

struct MethodRow {
    method: Method,
    name: &'static str,
    legacy_number: Option<u64>,
}

const fn row(method: Method, name: &'static str, legacy_number: Option<u64>) -> MethodRow {
    MethodRow { method, name, legacy_number }
}

const TABLE: &[MethodRow] = &[
    row(Method::Publish, "publish", Some(0)),
    row(Method::Broadcast, "broadcast", Some(1)),
    row(Method::Unsubscribe, "unsubscribe", Some(2)),
    row(Method::Disconnect, "disconnect", Some(3)),
    row(Method::Presence, "presence", Some(4)),
    row(Method::PresenceStats, "presence_stats", Some(5)),
    row(Method::History, "history", Some(6)),
    row(Method::HistoryRemove, "history_remove", Some(7)),
    row(Method::Channels, "channels", Some(8)),
    row(Method::Info, "info", Some(9)),
    row(Method::Rpc, "rpc", Some(10)),
    row(Method::Subscribe, "subscribe", Some(11)),
    row(Method::Refresh, "refresh", Some(12)),
    row(Method::Connections, "connections", Some(14)),
    row(Method::UpdateUserStatus, "update_user_status", Some(15)),
    row(Method::GetUserStatus, "get_user_status", Some(16)),
    row(Method::DeleteUserStatus, "delete_user_status", Some(17)),
    row(Method::BlockUser, "block_user", Some(18)),
    row(Method::UnblockUser, "unblock_user", Some(19)),
    row(Method::RevokeToken, "revoke_token", Some(20)),
    row(Method::InvalidateUserTokens, "invalidate_user_tokens", Some(21)),
    row(Method::SetView, "set_view", None),
    row(Method::Snapshot, "snapshot", None),
    row(Method::Append, "append", None),
    row(Method::Batch, "batch", None),
    row(Method::ConnectionLog, "connection_log", None),
    row(Method::PublicationReport, "publication_report", None),
    row(Method::HotLists, "hot_lists", None),
    row(Method::DebugFor, "debug_for", None),
    row(Method::NodeConfig, "node_config", None),
    row(Method::Dump, "dump", None),
    row(Method::MapPublish, "map_publish", Some(33)),
    row(Method::MapRemove, "map_remove", Some(34)),
    row(Method::MapReadState, "map_read_state", Some(35)),
    row(Method::MapReadStream, "map_read_stream", Some(36)),
    row(Method::MapStats, "map_stats", Some(37)),
    row(Method::MapClear, "map_clear", Some(38)),
    row(Method::SharedPollPublish, "shared_poll_publish", Some(39)),
];
