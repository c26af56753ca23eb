//! Content of streams: JSON values and bytes, as publications and as bodies of responses.
//! In: bodies of requests, payloads → out: payloads, bodies, events of SSE.
//! Pure. Never: headers.
//! Changed here: how content is cut into publications and joined again.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use fanwire_node::protocol::{is_json, nests_too_deep};
use serde_json::value::RawValue;

/// How the content of a stream is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentKind {
    /// `application/json`: a publication for each value.
    Json,
    /// `text/*`: bytes that SSE can carry.
    Text,
    /// Bytes that SSE carries in base64.
    Binary,
}

impl ContentKind {
    /// The kind of a content type, parameters or not.
    pub(crate) fn of(content_type: &str) -> Self {
        match essence(content_type).as_str() {
            "application/json" => Self::Json,
            text if text.starts_with("text/") => Self::Text,
            _ => Self::Binary,
        }
    }

    /// Cuts a body into payloads. An array of JSON values is flattened by one level.
    ///
    /// # Errors
    /// A text for the sender of a body that is not JSON.
    pub(crate) fn payloads(self, body: &Bytes) -> Result<Vec<Bytes>, String> {
        if body.is_empty() {
            return Ok(Vec::new());
        }
        if self != Self::Json {
            return Ok(vec![body.clone()]);
        }
        let text =
            str::from_utf8(body).map_err(|error| format!("the body is not UTF-8: {error}"))?;
        let wrong = |error: serde_json::Error| format!("the body is not JSON: {error}");
        let value: &RawValue = serde_json::from_str(text).map_err(wrong)?;
        if !value.get().starts_with('[') {
            return Ok(vec![body.slice_ref(value.get().as_bytes())]);
        }
        let values: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
        Ok(values.into_iter().map(|value| body.slice_ref(value.get().as_bytes())).collect())
    }

    /// Whether readers can take a payload, which a client of the channel may have chosen: one that is no JSON would make all of the
    /// response none, and one that is nested too deep ends readers.
    pub(crate) fn can_hold(self, payload: &[u8]) -> bool {
        self != Self::Json || is_json(payload) && !nests_too_deep(payload)
    }

    /// Joins payloads to the body of a response. One payload of bytes is not copied.
    pub(crate) fn joined(self, payloads: &[Bytes]) -> Bytes {
        if self != Self::Json {
            return match payloads {
                [] => Bytes::new(),
                [one] => one.clone(),
                many => many.concat().into(),
            };
        }
        let mut body =
            BytesMut::with_capacity(payloads.iter().map(|one| one.len() + 1).sum::<usize>() + 2);
        body.put_u8(b'[');
        for (index, payload) in payloads.iter().enumerate() {
            if index > 0 {
                body.put_u8(b',');
            }
            body.put_slice(payload);
        }
        body.put_u8(b']');
        body.freeze()
    }

    /// Writes payloads as one event `data`; nothing for none.
    pub(crate) fn write_event(self, payloads: &[Bytes], to: &mut BytesMut) {
        if payloads.is_empty() {
            return;
        }
        let mut body = self.joined(payloads);
        if self == Self::Binary {
            body = STANDARD.encode(&body).into();
        }
        to.put_slice(b"event: data\n");
        let mut rest = &body[..];
        loop {
            // Each kind of line end counts, or a payload could forge events.
            let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            to.put_slice(b"data:");
            // One space after the colon does not count: another one keeps a leading space of the content.
            if rest.first() == Some(&b' ') {
                to.put_u8(b' ');
            }
            to.put_slice(&rest[..end.unwrap_or(rest.len())]);
            to.put_u8(b'\n');
            let Some(end) = end else { break };
            let length = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
            rest = &rest[end + length..];
        }
        to.put_u8(b'\n');
    }
}

/// The event `control`, which follows data.
pub(crate) struct ControlEvent<'a> {
    /// The offset at which to read on.
    pub(crate) next: &'a str,
    pub(crate) cursor: Option<u64>,
    pub(crate) is_up_to_date: bool,
    pub(crate) is_closed: bool,
}

impl ControlEvent<'_> {
    pub(crate) fn write(&self, to: &mut BytesMut) {
        let next = self.next;
        let mut json = format!("event: control\ndata:{{\"streamNextOffset\":\"{next}\"");
        if let Some(cursor) = self.cursor.filter(|_| !self.is_closed) {
            let _ = write!(json, ",\"streamCursor\":\"{cursor}\"");
        }
        if self.is_up_to_date {
            json.push_str(",\"upToDate\":true");
        }
        if self.is_closed {
            json.push_str(",\"streamClosed\":true");
        }
        json.push_str("}\n\n");
        to.put_slice(json.as_bytes());
    }
}

/// A content type without parameters, in lower case.
pub(crate) fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
