//! The clock of the machine, which says when tokens expire; it may step, and an `Instant` does not.
//! In: nothing → out: Unix time.
//! Uses `SystemTime`. Never: remembers anything.
//! Changed here: nothing but the unit. What follows from a step is decided in `node`.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; 0 for a clock that is set to a time before.
pub fn unix_ms() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    unix.as_millis().try_into().unwrap_or(u64::MAX)
}
