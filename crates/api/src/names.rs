//! The table of the methods of the server API, and the methods by name.
//! In: a name from a path or a batch, or a number of the legacy path → out: a `Method`.
//! Pure; never parameters, results or HTTP.
//! A method is a row here and a file `method/NAME.rs`; `method.rs` makes its dispatch from the same row.

/// Gives every method to a macro, one row each: variant, name, request, result, summary, and number on the legacy path. Rows under
/// `diagnostics` have no number.
macro_rules! method_table {
    ($rows:ident) => {
        $rows! {
            built {
                Publish = publish(PublishRequest) -> PublishResult,
                    "Publishes to all subscribers of one channel.", Some(0);
                Append = append(AppendRequest) -> AppendResult,
                    "Appends to a message that grows, and publishes it as a whole.", None;
                Broadcast = broadcast(BroadcastRequest) -> BroadcastResult,
                    "Publishes the same data into many channels.", Some(1);
                Unsubscribe = unsubscribe(UnsubscribeRequest) -> Empty,
                    "Unsubscribes the connections of a user from one channel, or from all.", Some(2);
                Disconnect = disconnect(DisconnectRequest) -> Empty,
                    "Closes the connections of a user.", Some(3);
                Presence = presence(PresenceRequest) -> PresenceResult,
                    "Returns the clients that are subscribed to a channel.", Some(4);
                PresenceStats = presence_stats(PresenceStatsRequest) -> PresenceStatsResult,
                    "Counts the clients and users that are subscribed to a channel.", Some(5);
                History = history(HistoryRequest) -> HistoryResult,
                    "Reads stored publications and the position of a channel.", Some(6);
                HistoryRemove = history_remove(HistoryRemoveRequest) -> Empty,
                    "Removes the stored publications of a channel and keeps offset and epoch.", Some(7);
                Channels = channels(ChannelsRequest) -> ChannelsResult,
                    "Lists the channels that have subscribers, for debugging.", Some(8);
                Info = info(InfoRequest) -> InfoResult,
                    "Returns name, version and counts of every node.", Some(9);
                Rpc = rpc(RpcRequest) -> RpcResult,
                    "Calls a function registered in the server.", Some(10);
                Subscribe = subscribe(SubscribeRequest) -> Empty,
                    "Subscribes the connections of a user to a channel.", Some(11);
                Refresh = refresh(RefreshRequest) -> Empty,
                    "Changes the expiry of a user's connections, or closes them as expired.", Some(12);
                Connections = connections(ConnectionsRequest) -> ConnectionsResult,
                    "Lists the connections of a user on all nodes.", Some(14);
                UpdateUserStatus = update_user_status(UpdateUserStatusRequest) -> Empty,
                    "Records that users are active, with a text of the application.", Some(15);
                GetUserStatus = get_user_status(GetUserStatusRequest) -> GetUserStatusResult,
                    "Returns when users were active, and who is online.", Some(16);
                DeleteUserStatus = delete_user_status(DeleteUserStatusRequest) -> Empty,
                    "Forgets the status of users.", Some(17);
                BlockUser = block_user(BlockUserRequest) -> RevocationResult,
                    "Closes the connections of a user, and refuses new ones.", Some(18);
                UnblockUser = unblock_user(UnblockUserRequest) -> Empty,
                    "Lets a blocked user connect again.", Some(19);
                RevokeToken = revoke_token(RevokeTokenRequest) -> RevocationResult,
                    "Makes one token invalid, and ends what it granted.", Some(20);
                InvalidateUserTokens = invalidate_user_tokens(InvalidateUserTokensRequest) -> RevocationResult,
                    "Makes the tokens of a user invalid that were issued before a time.", Some(21);
                SetView = set_view(SetViewRequest) -> Empty,
                    "Sets what a client sees of a channel with places.", None;
                Snapshot = snapshot(SnapshotRequest) -> SnapshotResult,
                    "Lists the nodes, or the connections of one node by pages, for a backend that receives events.", None;
                Rebalance = rebalance(RebalanceRequest) -> Empty,
                    "Moves clients from nodes with more connections than the average to the others.", None;
                Evacuate = evacuate(EvacuateRequest) -> Empty,
                    "Moves clients of one node to the others.", None;
                MapPublish = map_publish(MapPublishRequest) -> MapChangeResult,
                    "Sets a key of a map channel.", Some(33);
                MapRemove = map_remove(MapRemoveRequest) -> MapChangeResult,
                    "Removes a key of a map channel.", Some(34);
                MapReadState = map_read_state(MapReadStateRequest) -> MapReadStateResult,
                    "Reads the entries of a map channel by pages, or one of them.", Some(35);
                MapReadStream = map_read_stream(MapReadStreamRequest) -> MapReadStreamResult,
                    "Reads the stored changes of a map channel.", Some(36);
                MapStats = map_stats(MapStatsRequest) -> MapStatsResult,
                    "Counts the entries of a map channel.", Some(37);
                MapClear = map_clear(MapClearRequest) -> Empty,
                    "Forgets the entries and the changes of a map channel.", Some(38);
                SharedPollPublish = shared_poll_publish(SharedPollPublishRequest) -> Empty,
                    "Publishes a value of a key of a shared poll channel.", Some(39);
                Batch = batch(BatchRequest) -> BatchReply,
                    "Runs several commands; each has its own result or error.", None;
            }
            diagnostics {
                ConnectionLog = connection_log(ConnectionLogRequest) -> ConnectionLogResult,
                    "Returns the last events of connections, also of those that ended in the last hour.";
                PublicationReport = publication_report(PublicationReportRequest) -> PublicationReportResult,
                    "Returns to how many subscribers a publication was delivered, and how fast.";
                HotLists = hot_lists(HotListsRequest) -> HotListsResult,
                    "Lists the channels, users and clients that cause the most work.";
                ClusterClock = cluster_clock(ClusterClockRequest) -> ClusterClockResult,
                    "Compares the clocks of all nodes with that of the node that answers.";
                DebugFor = debug_for(DebugForRequest) -> DebugForResult,
                    "Logs the events of users, channels and addresses for a time.";
                NodeConfig = node_config(NodeConfigRequest) -> NodeConfigResult,
                    "Returns the configuration of the node that answers, and what the sources say now.";
                Dump = dump(DumpRequest) -> DumpResult,
                    "Returns the tables of the node that answers, and their sizes.";
            }
        }
    };
}
pub(crate) use method_table;

/// Generates the methods and their names.
macro_rules! names {
    (
        built {
            $($method:ident = $run:ident($_request:ty) -> $_result:ty, $_summary:literal, $number:expr;)*
        }
        diagnostics { $($asked:ident = $ask:ident($_question:ty) -> $_answer:ty, $_about:literal;)* }
    ) => {
        /// A method of the server API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $($method,)*
            $($asked,)*
        }

        impl Method {
            /// Every method, in the order of the variants.
            pub const ALL: [Self; NAMES.len()] =
                [$(Self::$method,)* $(Self::$asked,)*];

            /// The number on the legacy path.
            fn legacy_number(self) -> Option<u64> {
                match self {
                    $(Self::$method => $number,)*
                    $(Self::$asked => None,)*
                }
            }
        }

        /// Names of methods, in the order of the variants.
        const NAMES: &[&str] =
            &[$(stringify!($run),)* $(stringify!($ask),)*];
    };
}

method_table!(names);

impl Method {
    /// The name in paths, batches and metrics.
    pub fn name(self) -> &'static str {
        NAMES[self.index()]
    }

    /// The method with this exact name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The method with this number on the legacy path; batch has none.
    pub fn of_legacy_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.legacy_number() == Some(number))
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
                | Self::ClusterClock
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
pub(crate) const COMMAND_KEYS: [&str; NAMES.len() + 1] = {
    let mut keys = ["id"; NAMES.len() + 1];
    let (_, names) = keys.split_at_mut(1);
    names.copy_from_slice(NAMES);
    keys
};
