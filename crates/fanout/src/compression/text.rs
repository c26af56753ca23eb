//! The texts in which clients receive a publication: messages, and for clients without commands bare pushes or events.
//! In: a broadcast → out: its text of a kind, written once, and the range of the publication in it.
//! Uses the encodings of the broadcast; never a history, never a connection.
//! Changed here: which texts have histories of their own. What is in an event is `event`.

use std::{ops::Range, sync::OnceLock};

use fanwire_node::{Broadcast, DeltaMode};
use fanwire_protocol::{Encoding, bare_push, publication_in_bare_push, publication_in_push};
use fanwire_shard::Transport;

use crate::event;

/// A kind of text. Each has a history of its own, where it has receivers in context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// The whole message in JSON.
    Json,
    /// The whole message in Protobuf.
    Protobuf,
    /// The push in JSON.
    BareJson,
    /// The push in JSON, as an event with its id.
    Event,
}

impl TextKind {
    pub(crate) const COUNT: usize = 4;

    /// All texts in the order of their indices.
    pub(crate) const ALL: [Self; Self::COUNT] =
        [Self::Json, Self::Protobuf, Self::BareJson, Self::Event];

    /// Dense index below [`COUNT`](Self::COUNT).
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The kind for a transport with context.
    pub(crate) fn of(transport: Transport, encoding: Encoding) -> Self {
        match (transport, encoding) {
            (Transport::UniEventStream, _) => Self::Event,
            (Transport::UniWebSocket | Transport::UniHttpStream, _) => Self::BareJson,
            (_, Encoding::Json) => Self::Json,
            (_, Encoding::Protobuf) => Self::Protobuf,
        }
    }

    pub(crate) fn encoding(self) -> Encoding {
        if self == Self::Protobuf { Encoding::Protobuf } else { Encoding::Json }
    }

    /// The text of a publication; `None` when it does not exist in this form. `event` keeps that of an event.
    pub(crate) fn text<'a>(
        self,
        broadcast: &'a Broadcast,
        delta_mode: DeltaMode,
        event: &'a OnceLock<Box<[u8]>>,
    ) -> Option<&'a [u8]> {
        let message = broadcast.message_in(delta_mode, self.encoding())?;
        let bare = || bare_push(Encoding::Json, message).expect("a publication is a push");
        Some(match self {
            Self::Json | Self::Protobuf => message,
            Self::BareJson => bare(),
            Self::Event => event.get_or_init(|| {
                let mut event = Vec::new();
                event::write(broadcast.position(), bare(), &mut event);
                event.into()
            }),
        })
    }

    /// The range of the publication in a text of this kind.
    pub(crate) fn publication_in(self, text: &[u8]) -> Option<Range<usize>> {
        match self {
            Self::Json | Self::Protobuf => publication_in_push(self.encoding(), text),
            Self::BareJson => publication_in_bare_push(text),
            Self::Event => publication_in_bare_push(text.split(|byte| *byte == b'\n').next()?),
        }
    }
}
