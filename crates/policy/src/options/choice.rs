//! Keys whose values are words: compression policy, recovery mode, data format.
//! In: the word in the configuration → out: the choice.
//! May use: nothing. Never implements a choice.
//! Changed here: words; the first one of each is the default.

/// How the publications of a namespace are compressed for clients that negotiated compression (`compression`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CompressionPolicy {
    /// "": `Context`, except where clients may publish that may not read; see [`Namespace::compression_policy`](super::Namespace::compression_policy).
    #[default]
    Unset,
    /// Each publication against the ones before it in its channel.
    Context,
    /// Each publication by itself.
    Standalone,
    /// Not at all.
    Off,
}

impl CompressionPolicy {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 4] = ["", "context", "standalone", "off"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" => Some(Self::Unset),
            "context" => Some(Self::Context),
            "standalone" => Some(Self::Standalone),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// The kind of channels in a namespace (`subscription_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SubscriptionType {
    /// "" or "stream": publications, one after the other.
    #[default]
    Stream,
    /// "map": entries by key (protocol §27).
    Map,
    /// "map_clients": the clients of other channels, by client id (protocol §27).
    MapClients,
    /// "map_users": the users of other channels, by user id (protocol §27).
    MapUsers,
    /// "shared_poll": values of a backend by key, which the node polls (protocol §28).
    SharedPoll,
}

impl SubscriptionType {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 6] =
        ["", "stream", "map", "map_clients", "map_users", "shared_poll"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" | "stream" => Some(Self::Stream),
            "map" => Some(Self::Map),
            "map_clients" => Some(Self::MapClients),
            "map_users" => Some(Self::MapUsers),
            "shared_poll" => Some(Self::SharedPoll),
            _ => None,
        }
    }

    /// Whether its channels hold entries by key.
    pub fn is_of_maps(self) -> bool {
        matches!(self, Self::Map | Self::MapClients | Self::MapUsers)
    }

    /// The `type` of requests for its channels (protocol §4).
    pub fn wire_type(self) -> i32 {
        match self {
            Self::Stream => 0,
            Self::Map => 1,
            Self::MapClients => 2,
            Self::MapUsers => 3,
            Self::SharedPoll => 4,
        }
    }
}

/// How a subscriber recovers (`force_recovery_mode`, protocol §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecoveryMode {
    /// "" or "stream": every publication it missed.
    #[default]
    Stream,
    /// The newest publication.
    Cache,
}

impl RecoveryMode {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 3] = ["", "stream", "cache"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" | "stream" => Some(Self::Stream),
            "cache" => Some(Self::Cache),
            _ => None,
        }
    }
}

/// The format of publication data (`publication_data_format`); violations get error 107.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataFormat {
    /// "": as in `channel.publication_data_format`; there it only demands that data is not empty.
    #[default]
    Unset,
    /// One JSON value.
    Json,
    /// One JSON object.
    JsonObject,
    /// Any bytes, or none.
    Binary,
}

impl DataFormat {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 4] = ["", "json", "json_object", "binary"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" => Some(Self::Unset),
            "json" => Some(Self::Json),
            "json_object" => Some(Self::JsonObject),
            "binary" => Some(Self::Binary),
            _ => None,
        }
    }
}
