//! Windows of clients: keys that have no effect, and memory for none of them.
//! In: a filled `Config` → out: a remark for each.
//! Uses the memory formula of `deflate`. Never: changes a value.
//! The limits of single keys live in their rows.

use fanwire_deflate::SenderWindow;

use super::{RuleResult, Severity};
use crate::options::Config;

pub(super) fn required_choice(config: &Config) -> RuleResult {
    let websocket = &config.websocket;
    (websocket.require_client_max_window_bits && !websocket.client_context_takeover).then(|| {
        let key = "websocket.require_client_max_window_bits";
        let reason = format!(
            "{key} is true, but without websocket.client_context_takeover no window is kept, and no offer is declined"
        );
        (Severity::Warning, key, reason)
    })
}

pub(super) fn memory_for_clients(config: &Config) -> RuleResult {
    let websocket = &config.websocket;
    let needed = SenderWindow::memory_for(websocket.client_max_window_bits);
    let is_short = websocket.compression && websocket.compression_memory_max < needed;
    (websocket.client_context_takeover && is_short).then(|| {
        let key = "websocket.compression_memory_max";
        let reason = format!(
            "{key} is {}, less than the window of one client ({needed} bytes), so \
             websocket.client_context_takeover has no effect",
            websocket.compression_memory_max
        );
        (Severity::Warning, key, reason)
    })
}
