//! The memory of a connection at rest.
//! In: nothing → out: sizes of types.
//! Uses the types alone; never a socket.
//! Changed here: the size that each connection may have. What its parts do is tested where they are used.

use super::*;

#[test]
fn a_connection_at_rest_takes_at_most_176_bytes() {
    // mio adds a number to each socket to find wrong registrations; a release build has none.
    let debug_bytes = if cfg!(debug_assertions) { 16 } else { 0 };
    assert!(size_of::<Option<Connection>>() - debug_bytes <= 176);
}
