//! What a broker says about the delta of a publication (protocol §11).
//! In: whether the publisher wants one, and what the stream holds → out: off, alone, or the payload to compare with.
//! Uses shared payloads. Never: patches; those are made by the node, for subscribers that can read them.
//! Change here: what crosses the port. When a patch pays is decided in `delta.rs` of `node`.

use bytes::Bytes;

/// What the delta of a publication can be made against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Delta {
    /// Nobody gets it as a delta.
    #[default]
    Off,
    /// It may be one, and no stream has what came before it.
    Alone,
    /// It may be one; this is the payload of the publication before it in its stream.
    Against(Bytes),
}

impl Delta {
    /// Of a publication that follows `previous` in its stream, if it is to be a delta at all.
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
