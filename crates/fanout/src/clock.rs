//! The clock of the machine, which decides when tokens expire. It may jump; an `Instant` does not.
//! In: nothing → out: Unix time.
//! Uses `SystemTime`. Never: state.
//! Changed here: only the unit. The consequences of a jump are decided in `node`.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; 0 if the clock is set to an earlier time.
pub fn unix_ms() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    unix.as_millis().try_into().unwrap_or(u64::MAX)
}
