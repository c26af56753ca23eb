//! What one connection may do in one turn, so that a peer that sends much does not hold up the deliveries of others.
//! In: bytes read, commands done → out: whether it may go on, or has to wait for the next turn.
//! Uses numbers only; never a clock, so that equal streams are cut at equal places.
//! Changed here: how large a share is. Who comes when lives in `turn`.

/// What is left of a connection's share, in bytes.
pub(super) struct Share(usize);

impl Default for Share {
    /// A whole one.
    fn default() -> Self {
        Self(SHARE)
    }
}

impl Share {
    /// So many bytes came from the socket.
    pub(super) fn read(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }

    /// So many commands were done, with so many bytes between them, inflated.
    pub(super) fn spend(&mut self, commands: usize, bytes: usize) {
        self.0 = self.0.saturating_sub(commands.saturating_mul(COMMAND).saturating_add(bytes));
    }

    pub(super) fn is_left(&self) -> bool {
        self.0 > 0
    }
}

/// A megabyte of large messages, which count when they are read and when they are done.
const SHARE: usize = 2 << 20;

/// What a command costs beside its bytes: 256 empty ones are a share, which take a shard half a millisecond.
const COMMAND: usize = 8 << 10;

#[cfg(test)]
mod tests;
