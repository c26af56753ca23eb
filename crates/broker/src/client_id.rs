//! The id of a connected client: what brokers, sessions and the server API mean the same connection by.
//! In: 36 characters, or 16 bytes between nodes → out: a value that is copied and compared.
//! Uses the format of UUIDs. Never: sessions; whether a client is connected is known by its hub.
//! Change here: how an id is read and written. New ids are made where a connect succeeds.

use std::fmt;

use uuid::Uuid;

/// The id of a connected client, as its connect result says it (protocol §7): random, of one connection only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(Uuid);

impl ClientId {
    /// Reads an id as clients are told it: 36 characters with hyphens. `None` for anything else.
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

    /// All of it is random but for six bits.
    pub fn hash(self) -> u64 {
        let (high, low) = self.0.as_u64_pair();
        high ^ low.rotate_left(32)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) gave.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

/// As clients are told it, and as [`ClientId::parse`] reads it.
impl fmt::Display for ClientId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(out)
    }
}

/// Characters of an id with hyphens; shorter and longer spellings are refused.
const HYPHENATED: usize = 36;
