//! Compressors of single connections, for streams that are not broadcast (RFC 7692 §7.1.1.1).
//! In: the configured limits, and the node's memory budget → out: a compressor for one connection, or none.
//! Uses `deflate::Dedicated` and `budget`; never decides which connections get one.
//! Changed here: the memory of such a compressor. `connection_writer` decides when one is made.

use std::sync::Arc;

use fanwire_deflate::{Dedicated, Strategy};

use crate::budget::{Budget, Reservation};

/// Settings of compressors of single connections.
#[derive(Clone, Debug)]
pub struct DedicatedSettings {
    /// Largest window in bits, 9–15; a peer may have asked for a smaller one.
    pub window_bits: u8,
    /// 1–9, as in zlib.
    pub memory_level: u8,
    /// 1–9, as in zlib.
    pub level: u8,
    pub strategy: Strategy,
    /// The budget of all compressors of the node.
    pub memory: Arc<Budget>,
}

impl Default for DedicatedSettings {
    /// The defaults of the configuration, with a budget of its own.
    fn default() -> Self {
        Self {
            window_bits: 12,
            memory_level: 5,
            level: 6,
            strategy: Strategy::default(),
            memory: Budget::new(256 << 20),
        }
    }
}

/// The compressor of one connection, with its granted memory.
pub(super) struct Context {
    pub(super) compressor: Dedicated,
    _memory: Reservation,
}

impl DedicatedSettings {
    /// A compressor for a peer with this window; `None` if the budget is used up.
    pub(super) fn make(&self, window_bits: u8) -> Option<Box<Context>> {
        let window_bits = window_bits.min(self.window_bits);
        let bytes = (1 << (window_bits + 2)) + (1 << (self.memory_level + 9));
        let memory = self.memory.reserve_once(bytes)?;
        let compressor =
            Dedicated::new(window_bits, self.memory_level, self.level).with_strategy(self.strategy);
        Some(Box::new(Context { compressor, _memory: memory }))
    }
}
