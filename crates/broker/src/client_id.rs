//! The id of a connected client: brokers, sessions and the server API name a connection by it.
//! In: 36 characters, or 16 bytes between nodes → out: a value that is copied and compared.
//! Uses the format of UUIDs. Never: sessions; only the hub stores which clients are connected.
//! Changed here: how an id is read and written. The node makes a new id when a connect succeeds.

use std::fmt;

use uuid::Uuid;

/// The id of a connected client, as in its connect result (protocol §7): random, one per connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(Uuid);

impl ClientId {
    /// Parses the form that clients receive: 36 characters with hyphens. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != HYPHENATED {
            return None;
        }
        Uuid::try_parse(text).ok().map(Self)
    }

    /// The bytes that brokers send between nodes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.into_bytes()
    }

    /// A hash without further mixing: all bits of the id but six are random.
    pub fn hash(self) -> u64 {
        let (high, low) = self.0.as_u64_pair();
        high ^ low.rotate_left(32)
    }

    /// Reads the result of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

/// The form that clients receive and [`ClientId::parse`] reads.
impl fmt::Display for ClientId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(out)
    }
}

/// Characters of an id with hyphens; shorter and longer spellings are refused.
const HYPHENATED: usize = 36;
