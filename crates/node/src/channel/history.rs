//! Which settings of history make sense together (Centrifugo v6 `history_size`, `history_ttl`, `history_meta_ttl`).
//! In: one namespace with the global settings filled in → out: the first `OptionsError`.
//! May use: nothing but the options. Never streams; what a broker does with them lives in `broker/`.
//! A rule between keys is changed here; limits of single keys live in the server's config table.

use std::time::Duration;

use crate::options::{Namespace, OptionsError};

/// # Errors
/// Size without time or time without size, recovery without history, parts of seconds, positions that are forgotten before publications are.
pub(super) fn check(namespace: &Namespace, prefix_key: &str) -> Result<(), OptionsError> {
    let (size, ttl) = (namespace.history_size, namespace.history_ttl);
    if (size == 0) != ttl.is_zero() {
        return Err(OptionsError::value(
            format!("{prefix_key}.history_ttl"),
            format_args!("{ttl:?}"),
            format!("more than 0s exactly when history_size ({size}) is more than 0"),
        ));
    }
    if namespace.force_recovery && size == 0 {
        return Err(OptionsError::value(
            format!("{prefix_key}.force_recovery"),
            true,
            "false where history_size and history_ttl are not set",
        ));
    }
    whole_seconds(ttl, prefix_key, "history_ttl")?;
    let meta_ttl = namespace.history_meta_ttl;
    whole_seconds(meta_ttl, prefix_key, "history_meta_ttl")?;
    if !meta_ttl.is_zero() && meta_ttl < ttl {
        return Err(OptionsError::value(
            format!("{prefix_key}.history_meta_ttl"),
            format_args!("{meta_ttl:?}"),
            format!("at least history_ttl ({ttl:?})"),
        ));
    }
    Ok(())
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
