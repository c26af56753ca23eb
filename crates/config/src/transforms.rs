//! Lists that say what codes and statuses become: of a refused connect, `code` and `to`, and of a backend's answer.
//! In: a JSON value → out: whether it has that form, and its rows.
//! Uses serde. Never: other kinds of values; judges a code; `fanwire_policy` and `rules` know which ones there are.
//! Changed here: the form of a row.

use std::fmt;

use fanwire_edge::ConnectCodeResponse;
use fanwire_policy::options::{ConnectCodeTransform, REASON_BYTES_MAX};
use fanwire_protocol::Disconnect;
use fanwire_proxy::{StatusMeaning, StatusTransform};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

/// Result of a transform of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transforms {
    Disconnects,
    Responses,
    Statuses,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DisconnectRow {
    code: u32,
    to: CodeAndReason,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CodeAndReason {
    code: u16,
    reason: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StatusRow {
    status_code: u16,
    to_error: Option<CodeAndMessage>,
    to_disconnect: Option<CodeAndReason>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CodeAndMessage {
    code: u32,
    message: String,
    temporary: bool,
}

impl StatusRow {
    /// Its meaning, or the expectation that it does not meet. A code of 0 is none, as with Centrifugo.
    fn meaning(self) -> Result<StatusTransform, &'static str> {
        let error = self.to_error.filter(|error| error.code > 0);
        let disconnect = self.to_disconnect.filter(|disconnect| disconnect.code > 0);
        let (text, to) = match (error, disconnect) {
            (Some(CodeAndMessage { code, message, temporary }), None) => {
                (message.clone(), StatusMeaning::Error { code, message, temporary })
            }
            (None, Some(CodeAndReason { code, reason })) => {
                (reason.clone(), StatusMeaning::Disconnect { code, reason })
            }
            _ => return Err("either to_error or to_disconnect, with a code above 0,"),
        };
        if !(100..=599).contains(&self.status_code) {
            return Err("a status_code from 100 to 599");
        }
        if !text.is_ascii() || text.len() > REASON_BYTES_MAX {
            return Err("a message or reason of at most 123 ASCII characters");
        }
        Ok(StatusTransform { status_code: self.status_code, to })
    }
}

impl Transforms {
    /// Whether a value is such a list.
    pub(crate) fn take(self, json: &Json) -> bool {
        match self {
            Self::Disconnects => rows::<DisconnectRow>(json).is_some(),
            Self::Responses => rows::<ConnectCodeResponse>(json).is_some(),
            Self::Statuses => rows::<StatusRow>(json).is_some(),
        }
    }

    /// The expectation that a row of such a list does not meet.
    pub(crate) fn mistake(self, json: &Json) -> Option<String> {
        let Self::Statuses = self else { return None };
        let meaning = |(index, row): (usize, StatusRow)| {
            row.meaning().err().map(|expected| format!("{expected} in row {}", index + 1))
        };
        taken(json).into_iter().enumerate().find_map(meaning)
    }
}

/// Text of the expected value, as the end of "expected …".
impl fmt::Display for Transforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnects => "a list of {\"code\", \"to\": {\"code\", \"reason\"}}",
            Self::Responses => "a list of {\"code\", \"to\": {\"status_code\", \"body\"}}",
            Self::Statuses => {
                "a list of {\"status_code\", \"to_error\": {\"code\", \"message\", \"temporary\"}} and \
                 {\"status_code\", \"to_disconnect\": {\"code\", \"reason\"}}"
            }
        })
    }
}

/// The rows of a value that [`Transforms::Disconnects`] took.
pub(crate) fn disconnects(json: &Json) -> Vec<ConnectCodeTransform> {
    let transform = |row: DisconnectRow| {
        let CodeAndReason { code, reason } = row.to;
        ConnectCodeTransform { code: row.code, to: Disconnect { code, reason: reason.into() } }
    };
    taken(json).into_iter().map(transform).collect()
}

/// The rows of a value that [`Transforms::Responses`] took.
pub(crate) fn responses(json: &Json) -> Vec<ConnectCodeResponse> {
    taken(json)
}

/// The rows of a value in which [`Transforms::Statuses`] found no mistake.
pub(crate) fn statuses(json: &Json) -> Vec<StatusTransform> {
    taken(json).into_iter().filter_map(|row: StatusRow| row.meaning().ok()).collect()
}

fn taken<T: DeserializeOwned>(json: &Json) -> Vec<T> {
    rows(json).expect("the row's kind took it")
}

fn rows<T: DeserializeOwned>(json: &Json) -> Option<Vec<T>> {
    Vec::deserialize(json).ok()
}

#[cfg(test)]
mod tests;
