//! The work of one connection in one turn, limited so that a busy peer does not delay deliveries to others.
//! In: bytes read, commands done → out: whether it may go on, or has to wait for the next turn.
//! Uses numbers only; never a clock, so that equal streams are cut at equal places.
//! Changed here: how large a share is. The order of connections lives in `turn`.

/// The rest of a connection's share, in bytes.
pub(super) struct Share(usize);

impl Default for Share {
    /// A full share.
    fn default() -> Self {
        Self(SHARE)
    }
}

impl Share {
    /// Counts bytes read from the socket.
    pub(super) fn read(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }

    /// Counts commands, and the inflated bytes of all of them.
    pub(super) fn spend(&mut self, commands: usize, bytes: usize) {
        self.0 = self.0.saturating_sub(commands.saturating_mul(COMMAND).saturating_add(bytes));
    }

    pub(super) fn is_left(&self) -> bool {
        self.0 > 0
    }
}

/// A megabyte of large messages: their bytes count when they are read and when they are handled.
const SHARE: usize = 2 << 20;

/// The cost of a command in addition to its bytes: 256 empty ones use up a share and take half a millisecond.
const COMMAND: usize = 8 << 10;

#[cfg(test)]
mod tests;
