//! Which settings of history are valid together (Centrifugo v6 `history_size`, `history_ttl`, `history_meta_ttl`).
//! In: one namespace with the global settings filled in → out: every `OptionsError`.
//! May use: the options only. Never streams; `broker/` implements them.
//! Changed here: a rule between keys; limits of single keys are in the server's config table.

use std::time::Duration;

use fanwire_auth::OptionsError;

use crate::options::Namespace;

/// Errors: size without time or time without size, recovery without history, fractions of a second, positions that
/// expire before publications do.
pub(super) fn mistakes(namespace: &Namespace, prefix_key: &str) -> Vec<OptionsError> {
    let size = namespace.history_size;
    let ttl = namespace.history_ttl;
    let meta_ttl = namespace.history_meta_ttl;
    let wrong = |key: &str, given: String, expected: String| {
        OptionsError::value(format!("{prefix_key}.{key}"), given, expected)
    };
    let mistakes = [
        ((size == 0) != ttl.is_zero()).then(|| {
            let expected =
                format!("more than 0s exactly when history_size ({size}) is more than 0");
            wrong("history_ttl", seconds(ttl), expected)
        }),
        (namespace.force_recovery && size == 0).then(|| {
            let expected = "false where history_size and history_ttl are not set";
            wrong("force_recovery", true.to_string(), expected.to_owned())
        }),
        whole_seconds(ttl, prefix_key, "history_ttl").err(),
        whole_seconds(meta_ttl, prefix_key, "history_meta_ttl").err(),
        (!meta_ttl.is_zero() && meta_ttl < ttl).then(|| {
            let expected = format!("at least history_ttl ({ttl:?})");
            wrong("history_meta_ttl", format!("{meta_ttl:?}"), expected)
        }),
    ];
    mistakes.into_iter().flatten().collect()
}

/// The duration as a person writes it; `Debug` prints zero as `0ns`.
fn seconds(ttl: Duration) -> String {
    if ttl.is_zero() { "0s".to_owned() } else { format!("{ttl:?}") }
}

fn whole_seconds(ttl: Duration, prefix_key: &str, key: &str) -> Result<(), OptionsError> {
    if ttl.subsec_nanos() == 0 {
        return Ok(());
    }
    let key = format!("{prefix_key}.{key}");
    Err(OptionsError::value(key, format_args!("{ttl:?}"), "whole seconds"))
}

#[cfg(test)]
mod tests;
