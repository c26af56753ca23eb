//! Calls of either kind: the headers that they carry, and the causes of a missing answer.
//! In: options of a proxy, facts about a connection → out: the headers of a call.
//! Uses `http`'s map of headers, which gRPC sends as metadata. Never: sends.
//! Changed here: which headers a call has. `http` and `grpc` send it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use fanwire_node::hooks::ClientContext;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Why a backend gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallFailure {
    /// A payload of the client is not JSON, and `binary_encoding` is off.
    #[error("the payload is not JSON, and binary_encoding is off")]
    Payload,
    /// The answer has another HTTP status than 200.
    #[error("the backend answered with status {0}")]
    Status(u16),
    /// The backend has said that it did not process the call.
    #[error("the backend refused the call unseen")]
    Unprocessed,
    /// No connection, or it ended; a gRPC status other than OK.
    #[error("the backend did not answer: {0}")]
    Transport(String),
    /// The answer was not complete in time.
    #[error("the backend did not answer in time")]
    Timeout,
    /// The answer is no response message.
    #[error("the backend's answer is no response: {0}")]
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

/// The headers that calls of a proxy carry.
#[derive(Debug)]
pub(crate) struct HeaderRules {
    fixed: HeaderMap,
    /// In lower case.
    emulated: Vec<String>,
    /// In lower case.
    passed: Vec<String>,
    /// They are sent as metadata of gRPC.
    is_metadata: bool,
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
        let emulated = lower(emulated);
        let passed = lower(passed);
        Ok(Self { fixed: headers, emulated, passed, is_metadata: false })
    }

    /// The same rules for metadata of gRPC, whose names `grpc-…` belong to the protocol and whose values of names `…-bin` are base64.
    pub(crate) fn for_grpc(mut self) -> Self {
        self.is_metadata = true;
        let mut fixed = HeaderMap::new();
        for (name, value) in &self.fixed {
            if let Some(name) = self.allowed(name.as_str()) {
                fixed.insert(name.clone(), self.encoded(&name, value.clone()));
            }
        }
        Self { fixed, ..self }
    }

    /// Fixed headers; then those of the connect command, which win; then those of the client's request, which win again.
    pub(crate) fn apply(&self, context: &ClientContext) -> HeaderMap {
        let mut headers = self.fixed.clone();
        for (name, value) in &context.emulated_headers {
            let listed = self.emulated.contains(name).then(|| self.allowed(name)).flatten();
            if let (Some(name), Ok(value)) = (listed, HeaderValue::from_bytes(value.as_bytes())) {
                headers.insert(name.clone(), self.encoded(&name, value));
            }
        }
        let mut replaced = Vec::new();
        for (name, value) in &context.headers {
            let listed = self.passed.contains(name).then(|| self.allowed(name)).flatten();
            let (Some(name), Ok(value)) = (listed, HeaderValue::from_maybe_shared(value.clone()))
            else {
                continue;
            };
            if !replaced.contains(&name) {
                headers.remove(&name);
                replaced.push(name.clone());
            }
            let is_encoded = context.transport == UNI_GRPC;
            let value = if is_encoded { value } else { self.encoded(&name, value) };
            headers.append(name, value);
        }
        headers
    }

    /// The name of a header that may be passed on: not those of one connection or one message (RFC 9110 §7.6.1).
    fn allowed(&self, name: &str) -> Option<HeaderName> {
        let is_reserved = self.is_metadata && name.starts_with("grpc-");
        let name: HeaderName = name.parse().ok()?;
        (!is_reserved && !OF_ONE_MESSAGE.contains(&name)).then_some(name)
    }

    fn encoded(&self, name: &HeaderName, value: HeaderValue) -> HeaderValue {
        if !self.is_metadata || !name.as_str().ends_with("-bin") {
            return value;
        }
        let base64 = STANDARD_NO_PAD.encode(value.as_bytes());
        HeaderValue::from_maybe_shared(Bytes::from(base64)).expect("base64 is ASCII")
    }

    pub(crate) fn emulated(&self) -> &[String] {
        &self.emulated
    }
}

/// The transport of clients whose request has metadata already.
const UNI_GRPC: &str = "uni_grpc";

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
