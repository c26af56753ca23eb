//! Errors of options: one enum, each value names the key, the value and what is expected.
//! In: findings of the checks of options, channels and keys → out: an error that the start prints and stops with.
//! May use: nothing. Never contains a secret: keys and secrets are described, not quoted.
//! Changed here: wording; the checks are in `validate.rs` and `channel.rs` of `node`, and `keys.rs`.

use std::fmt;

use regex::Regex;

/// A configuration mistake that stops the start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A value out of its range or form.
    #[error("{key} is {value:?}, expected {expected}")]
    Value { key: String, value: String, expected: String },
    /// Two namespaces have the same name.
    #[error("{key} is {value:?} a second time, expected a name of its own")]
    Duplicate { key: String, value: String },
    /// A pattern that does not compile.
    #[error("{key} is {value:?}, expected a regular expression: {fault}")]
    Regex { key: String, value: String, fault: String },
    /// Text that is not a usable public key; the text itself is not repeated.
    #[error("{key} {fault}, expected {expected}")]
    PublicKey { key: String, fault: String, expected: &'static str },
}

impl OptionsError {
    pub fn value(
        key: impl Into<String>,
        value: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Value { key: key.into(), value: value.to_string(), expected: expected.into() }
    }
}

/// Compiles a pattern; "" = none.
pub fn compile(prefix_key: &str, key: &str, pattern: &str) -> Result<Option<Regex>, OptionsError> {
    if pattern.is_empty() {
        return Ok(None);
    }
    Regex::new(pattern).map(Some).map_err(|error| OptionsError::Regex {
        key: format!("{prefix_key}.{key}"),
        value: pattern.to_owned(),
        fault: last_line(&error.to_string()).to_owned(),
    })
}

/// The regex crate draws the pattern with carets; the cause stands in the last line.
fn last_line(error: &str) -> &str {
    let line = error.lines().last().unwrap_or(error).trim();
    line.strip_prefix("error: ").unwrap_or(line)
}
