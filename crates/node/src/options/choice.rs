//! Keys whose values are one of a few words: how to compress, what recovery brings, what data must be.
//! In: the word in the configuration → out: the choice.
//! May use: nothing. Never decides what a choice means.
//! Words are changed here; the first one of each is the default.

/// How the publications of a namespace are compressed for clients that can take it (`compression`).
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

/// What the channels of a namespace hold (`subscription_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SubscriptionType {
    /// "" or "stream": publications, one after the other.
    #[default]
    Stream,
    /// Maps and shared polls (protocol §27, §28), which are not served: who subscribes or publishes as to a stream is refused.
    Other,
}

impl SubscriptionType {
    /// The values of the configuration key, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 6] =
        ["", "stream", "map", "map_clients", "map_users", "shared_poll"];

    /// Reads the value of the configuration key; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "" | "stream" => Some(Self::Stream),
            "map" | "map_clients" | "map_users" | "shared_poll" => Some(Self::Other),
            _ => None,
        }
    }
}

/// What a subscriber that recovers is given (`force_recovery_mode`, protocol §9).
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

/// What the data of a publication must be (`publication_data_format`); violations get error 107.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataFormat {
    /// "": as in `channel.publication_data_format`; there it demands only data that is not empty.
    #[default]
    Unset,
    /// One JSON value.
    Json,
    /// One JSON object.
    JsonObject,
    /// Any bytes, none included.
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
