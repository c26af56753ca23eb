//! The base that a broker offers for the delta of a publication (protocol §11).
//! In: whether the publisher wants one, the newest payload of the stream → out: off, no base, or that payload.
//! Uses shared payloads. Never: patches; the node makes them, for subscribers that can read them.
//! Changed here: the value that crosses the port. When a patch is worth sending is decided in `delta.rs` of `node`.

use bytes::Bytes;

/// The base for the delta of a publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Delta {
    /// The publisher wants no delta.
    #[default]
    Off,
    /// The publisher wants one, but no stream has the previous publication.
    Alone,
    /// The payload of the previous publication of the stream.
    Against(Bytes),
}

impl Delta {
    /// The base for a publication that follows `previous` in its stream; `is_wanted` is the request of the publisher.
    pub fn candidate(is_wanted: bool, previous: Option<&Bytes>) -> Self {
        match previous {
            _ if !is_wanted => Self::Off,
            Some(previous) => Self::Against(previous.clone()),
            None => Self::Alone,
        }
    }
}

#[cfg(test)]
mod tests;
