//! Calls of either kind: the headers that they carry, and the causes of a missing answer.
//! In: options of a proxy, facts about a connection → out: the headers of a call.
//! Uses `http`'s map of headers, which gRPC sends as metadata. Never: sends.
//! Changed here: which headers a call has. `http` and `grpc` send it.

use std::collections::BTreeMap;
use std::fmt;

use fanwire_node::hooks::ClientContext;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Why a backend gave no answer.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// A payload of the client is not JSON, and `binary_encoding` is off.
    Payload,
    /// The answer has another HTTP status than 200.
    Status(u16),
    /// The backend has said that it did not process the call.
    Unprocessed,
    /// No connection, or it ended; a gRPC status other than OK.
    Transport(String),
    /// The answer was not complete in time.
    Timeout,
    /// The answer is no response message.
    Answer(String),
}

impl CallFailure {
    /// Whether it says that the backend is down.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Unprocessed | Self::Transport(_) | Self::Timeout => true,
            Self::Status(status) => *status >= 500,
            Self::Payload | Self::Answer(_) => false,
        }
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Payload => f.write_str("the payload is not JSON, and binary_encoding is off"),
            Self::Status(status) => write!(f, "the backend answered with status {status}"),
            Self::Unprocessed => f.write_str("the backend refused the call unseen"),
            Self::Transport(error) => write!(f, "the backend did not answer: {error}"),
            Self::Timeout => f.write_str("the backend did not answer in time"),
            Self::Answer(error) => write!(f, "the backend's answer is no response: {error}"),
        }
    }
}

/// The headers that calls of a proxy carry.
#[derive(Debug)]
pub(crate) struct HeaderRules {
    fixed: HeaderMap,
    /// In lower case.
    emulated: Vec<String>,
    /// In lower case.
    passed: Vec<String>,
}

impl HeaderRules {
    /// # Errors
    /// The name of a fixed header that no request may have.
    pub(crate) fn new(
        fixed: &BTreeMap<String, String>,
        emulated: &[String],
        passed: &[String],
    ) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in fixed {
            let header = name.parse::<HeaderName>().ok().zip(HeaderValue::from_str(value).ok());
            let (header, value) = header.ok_or_else(|| name.clone())?;
            headers.insert(header, value);
        }
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Ok(Self { fixed: headers, emulated: lower(emulated), passed: lower(passed) })
    }

    /// Fixed headers; then those of the connect command, which win; then those of the client's request, which win again.
    pub(crate) fn apply(&self, context: &ClientContext) -> HeaderMap {
        let mut headers = self.fixed.clone();
        for (name, value) in &context.emulated_headers {
            let listed = self.emulated.contains(name).then(|| allowed(name)).flatten();
            if let (Some(name), Ok(value)) = (listed, HeaderValue::from_bytes(value.as_bytes())) {
                headers.insert(name, value);
            }
        }
        let mut replaced = Vec::new();
        for (name, value) in &context.headers {
            let listed = self.passed.contains(name).then(|| allowed(name)).flatten();
            let (Some(name), Ok(value)) = (listed, HeaderValue::from_maybe_shared(value.clone()))
            else {
                continue;
            };
            if !replaced.contains(&name) {
                headers.remove(&name);
                replaced.push(name.clone());
            }
            headers.append(name, value);
        }
        headers
    }

    pub(crate) fn emulated(&self) -> &[String] {
        &self.emulated
    }
}

/// The name of a header that may be passed on: not those of one connection or one message (RFC 9110 §7.6.1).
fn allowed(name: &str) -> Option<HeaderName> {
    let name: HeaderName = name.parse().ok()?;
    (!OF_ONE_MESSAGE.contains(&name)).then_some(name)
}

const OF_ONE_MESSAGE: [HeaderName; 11] = [
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

#[cfg(test)]
mod tests;
