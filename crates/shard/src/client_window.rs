//! Memory for the window of one client that refers to its earlier messages (RFC 7692 §7.1.1.2, §7.1.2.2).
//! In: the window that a handshake agrees to, and the node's memory budget → out: granted memory for it, or none.
//! Uses `deflate`, `ws` and `budget`; never allocates the window, which the reader does as messages arrive.
//! Changed here: how the memory is counted. What is agreed without memory is decided in `edge::clients::upgrade`.

use std::sync::Arc;

use fanwire_deflate::SenderWindow;
use fanwire_ws::Reader;

use crate::budget::{Budget, Reservation};

/// Granted memory for a window. It is granted in full before the 101, because after that the client may refer to all of
/// its window, and the server cannot take the agreement back.
pub struct ClientWindow {
    window_bits: u8,
    memory: Reservation,
}

impl ClientWindow {
    /// Memory for a window of 2^`window_bits` bytes; `None` if the budget is used up.
    pub fn reserve(budget: &Arc<Budget>, window_bits: u8) -> Option<Self> {
        let memory = budget.reserve_once(SenderWindow::memory_for(window_bits))?;
        Some(Self { window_bits, memory })
    }

    /// The memory alone, for a reader that goes on.
    pub(crate) fn into_memory(self) -> Reservation {
        self.memory
    }

    /// The reader of the connection, and the memory to hold as long as the reader exists.
    pub(crate) fn into_reader(self) -> (Reader, Reservation) {
        (Reader::with_takeover(self.window_bits), self.memory)
    }
}
