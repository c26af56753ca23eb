//! The position that a client without commands names when it comes back (protocol §25), as `Last-Event-ID` of an event stream.
//! In: the text of a request, a connect result → out: the position, those of the messages after a connect, and why there is none.
//! Uses: positions of the broker. Never: reads a stream; `command/connect.rs` does.
//! Changed here: the form of an id, and which messages have one. The shell writes them (`Outbox::position`).

use std::fmt;

use fanwire_broker::{Epoch, Position};
use fanwire_protocol::ConnectResult;

use fanwire_policy::recovery::Unrecovered;

/// The id of an event: the position of its publication as `OFFSET.EPOCH`, or a text that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastEventId(Option<Position>);

impl LastEventId {
    /// Reads an id. Any other text is an id without a position: its client learns that nothing was recovered.
    pub fn parse(text: &str) -> Self {
        let position = || {
            let (offset, epoch) = text.split_once('.')?;
            let is_number = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit());
            let offset = is_number.then(|| offset.parse().ok()).flatten()?;
            let epoch = Epoch::parse(epoch).filter(|epoch| *epoch != Epoch::NONE)?;
            Some(Position { offset, epoch })
        };
        Self(position())
    }

    /// The id of a position; `None` when it is not one in a stream.
    pub fn of(position: Position) -> Option<Self> {
        (position.epoch != Epoch::NONE).then_some(Self(Some(position)))
    }

    /// The position from which a client continues in one of `recoverable` channels.
    ///
    /// # Errors
    /// The cause why there is none.
    pub(crate) fn resume(self, recoverable: usize) -> Result<Position, Unresumed> {
        match (self.0, recoverable) {
            (None, _) => Err(Unresumed::Invalid),
            (Some(position), 1) => Ok(position),
            (Some(_), _) => Err(Unresumed::Channels),
        }
    }
}

impl fmt::Display for LastEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Position { offset, epoch }| write!(f, "{offset}.{epoch}"))
    }
}

/// Why a client did not continue where its last event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unresumed {
    Invalid,
    /// An id has no channel, so that it means one only where there is one.
    Channels,
    Unrecovered(Unrecovered),
}

impl Unresumed {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Channels => "channels",
            Self::Unrecovered(cause) => cause.name(),
        }
    }

    pub(crate) fn explanation(self) -> &'static str {
        match self {
            Self::Invalid => "the last event id is not OFFSET.EPOCH, as the server sends it",
            Self::Channels => "the connection has not exactly one channel that can be recovered",
            Self::Unrecovered(cause) => cause.explanation(),
        }
    }
}

/// The positions after a connect: of its push, then of each missed publication if they are sent `apart` from it. None without
/// exactly one channel that can be recovered.
pub(crate) fn positions(result: &ConnectResult, apart: bool) -> Vec<Position> {
    let mut recoverable = result.subs.values().filter(|channel| channel.recoverable);
    let (Some(channel), None) = (recoverable.next(), recoverable.next()) else {
        return Vec::new();
    };
    let Some(epoch) = Epoch::parse(&channel.epoch) else { return Vec::new() };
    let missed = channel.publications.iter().map(|publication| publication.offset);
    let position = |offset| Position { offset, epoch };
    if apart {
        [channel.offset].into_iter().chain(missed).map(position).collect()
    } else {
        vec![position(missed.last().unwrap_or(channel.offset))]
    }
}

#[cfg(test)]
mod tests;
