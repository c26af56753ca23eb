//! Findings about a configuration, in words.
//! In: the position of a value and its error → out: one line that names source, key, value and remedy.
//! Uses `key`. Never: checks a value; shows a secret.
//! Changed here: the wording; unknown keys are found in `settings`, wrong values in `apply`, conflicts in `rules`.

use std::fmt;
use std::path::PathBuf;

use super::key::{Kind, Misfit, Weight};

/// One remark about the configuration. Its text is complete without the severity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub source: Source,
    /// The full key path, `channel.namespaces[chat].history_size`; a variable's name when it is none.
    pub key: String,
    pub problem: Problem,
}

/// Consequence of a finding, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The start is refused.
    Error,
    /// The start goes on without something that was asked for.
    Warning,
    /// Works as configured; perhaps not what was meant.
    Note,
}

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    File(PathBuf),
    /// The variable's full name.
    Environment(String),
    /// The dotted name without dashes.
    Flag(String),
    /// A default, or development mode.
    Default,
}

/// Problem that a finding reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// No such key; the nearest one, when it is near.
    Unknown { nearest: Option<String> },
    /// A value of another type; `value` is empty for secrets.
    WrongType { value: String, expected: String },
    /// A value outside the limits; `value` is empty for secrets.
    OutOfRange { value: String, expected: String },
    /// A value that only the node can judge, or that contradicts another key.
    Rejected { reason: String },
    /// A file with this many keys of Centrifugo before v6.
    Outdated { count: usize },
    /// A key of Centrifugo that Fanwire does not obey yet.
    NotYet { doc: &'static str, weight: Weight },
}

impl Finding {
    /// A value that does not fit its key.
    pub(crate) fn misfit(
        source: &Source,
        key: &str,
        kind: &Kind,
        value: String,
        misfit: Misfit,
    ) -> Self {
        let value = if matches!(kind, Kind::Secret | Kind::Texts) {
            String::new()
        } else {
            shortened(value)
        };
        let problem = match misfit {
            Misfit::Type(expected) => Problem::WrongType { value, expected },
            Misfit::Range(expected) => Problem::OutOfRange { value, expected },
        };
        Self { severity: Severity::Error, source: source.clone(), key: key.to_owned(), problem }
    }

    /// An unknown key.
    pub(crate) fn unknown(source: Source, key: String, nearest: Option<String>) -> Self {
        Self { severity: Severity::Warning, source, key, problem: Problem::Unknown { nearest } }
    }

    /// A key that is not obeyed yet and was asked for.
    pub(crate) fn not_yet(source: &Source, key: &str, doc: &'static str, weight: Weight) -> Self {
        let severity = match weight {
            Weight::Refused => Severity::Error,
            Weight::Feature => Severity::Warning,
            Weight::Tuning => Severity::Note,
        };
        let problem = Problem::NotYet { doc, weight };
        Self { severity, source: source.clone(), key: key.to_owned(), problem }
    }

    /// A value that contradicts something; the reason names key, value and remedy.
    pub(crate) fn rejected(severity: Severity, source: Source, key: &str, reason: String) -> Self {
        Self { severity, source, key: key.to_owned(), problem: Problem::Rejected { reason } }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.source {
            Source::Default => {}
            // Its name is all that is known of it.
            Source::Environment(variable) if variable == key => f.write_str("environment ")?,
            source => write!(f, "{source}: ")?,
        }
        match &self.problem {
            Problem::Unknown { nearest: Some(nearest) } => {
                write!(f, "{key} is not a known key, did you mean {nearest}?")
            }
            Problem::Unknown { nearest: None } => write!(f, "{key} is not a known key"),
            Problem::WrongType { value, expected } | Problem::OutOfRange { value, expected } => {
                let is = if value.is_empty() { String::new() } else { format!(" is {value},") };
                write!(f, "{key}{is} expected {expected}")
            }
            Problem::Rejected { reason } => f.write_str(reason),
            Problem::Outdated { count } => write!(
                f,
                "{count} keys are of Centrifugo before v6, which had no sections, and are not obeyed; \
                 {CONVERTER} converts files and variables"
            ),
            Problem::NotYet { doc, weight: Weight::Refused } => {
                write!(f, "{key} is not supported yet and cannot be left out. {doc}")
            }
            Problem::NotYet { doc, .. } => write!(f, "{key} is not supported yet. {doc}"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => path.display().fmt(f),
            Source::Environment(variable) => write!(f, "environment {variable}"),
            Source::Flag(name) => write!(f, "flag --{name}"),
            Source::Default => f.write_str("default"),
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// The beginning of a text, which may be a whole document, without the part between `//` and `@`, where addresses have
/// passwords.
pub(crate) fn shortened(value: String) -> String {
    let value = match (value.find("//"), value.rfind('@')) {
        (Some(start), Some(end)) if start < end => {
            format!("{}//…{}", &value[..start], &value[end..])
        }
        _ => value,
    };
    match value.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value,
    }
}

const CONVERTER: &str = "https://centrifugal.dev/docs/getting-started/migration_v6";

const VALUE_CHARS_MAX: usize = 60;
