//! Lists that say what becomes of the codes of a refused connect: `transforms`, members with `code` and `to`.
//! In: a JSON value → out: whether it has that form, and its rows.
//! Uses serde. Never: other kinds of values; judges a number; `fanwire_node` and `rules` know which codes and statuses there are.
//! The form of a row is changed here.

use std::fmt;

use fanwire_node::options::ConnectCodeTransform;
use fanwire_node::protocol::Disconnect;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

/// Result of a transform of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transforms {
    Disconnects,
    Responses,
}

/// `connect_code_to_http_response.transforms[]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectCodeResponse {
    /// Code of the error or of the disconnect.
    pub code: u32,
    pub to: StatusAndBody,
}

/// A response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatusAndBody {
    pub status_code: u16,
    /// "" = the text of the code.
    pub body: String,
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

impl Transforms {
    /// Whether a value is such a list.
    pub(crate) fn take(self, json: &Json) -> bool {
        match self {
            Self::Disconnects => rows::<DisconnectRow>(json).is_some(),
            Self::Responses => rows::<ConnectCodeResponse>(json).is_some(),
        }
    }
}

/// Text of the expected value, as the end of "expected …".
impl fmt::Display for Transforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnects => "a list of {\"code\", \"to\": {\"code\", \"reason\"}}",
            Self::Responses => "a list of {\"code\", \"to\": {\"status_code\", \"body\"}}",
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

fn taken<T: DeserializeOwned>(json: &Json) -> Vec<T> {
    rows(json).expect("the row's kind took it")
}

fn rows<T: DeserializeOwned>(json: &Json) -> Option<Vec<T>> {
    Vec::deserialize(json).ok()
}

#[cfg(test)]
mod tests;
