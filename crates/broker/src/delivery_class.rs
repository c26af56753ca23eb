//! How a publication waits for subscribers that cannot keep up (`delivery`).
//! In: the word of a request or of the configuration → out: the class.
//! Uses the standard library only. Never: queues; the shards of a node apply the class.
//! Changed here: the classes and their names. What each means for a connection is in `backlog.rs` of `fanout`.

/// How a publication is delivered to a connection that takes no bytes at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeliveryClass {
    /// The publication is queued. A connection with too many queued bytes is disconnected (3008).
    #[default]
    Reliable,
    /// The publication waits until the connection takes bytes again. A newer one replaces it.
    Latest,
}

impl DeliveryClass {
    /// The names of the classes, as [`parse`](Self::parse) reads them.
    pub const NAMES: [&'static str; 2] = ["reliable", "latest"];

    /// Reads a name; `None` for anything not in [`NAMES`](Self::NAMES).
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "reliable" => Some(Self::Reliable),
            "latest" => Some(Self::Latest),
            _ => None,
        }
    }
}
