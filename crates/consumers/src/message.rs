//! The forms of messages (docs/consumers.md): an enveloped command, a command with its method outside, data of a publication.
//! In: a message as a queue delivers it → out: a command of the server API, or why the message is skipped.
//! Uses the methods of `api`. Never: sockets, the outcome of a command.
//! Changed here: which methods are executed, how headers become options of a publication.

use std::collections::BTreeMap;

use crate::options::PublicationDataMode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fanwire_api::{AnyCase, BODY_BYTES_MAX, BroadcastRequest, Command, Method, PublishRequest};
use fanwire_telemetry::excerpt;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A message of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueMessage {
    /// The name of the message in its queue, for log lines.
    pub(crate) id: String,
    /// "" = the payload names a method.
    pub(crate) method: String,
    /// `None` = the queue has none, or one above [`MESSAGE_BYTES_MAX`] that it did not deliver.
    pub(crate) payload: Option<Bytes>,
    /// Names and values; without data of publications only [`TRACEPARENT`].
    pub(crate) headers: Vec<(String, String)>,
}

/// Why a message is acknowledged without an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipCause {
    /// The payload is missing, or longer than 16 MiB.
    Payload,
    /// The payload is not JSON, or has a field of a wrong type.
    Malformed,
    /// No method that consumers execute.
    Method,
    /// Data of a publication without channels.
    Channels,
    /// Data of a publication with an option of a wrong form.
    Header,
    /// The API answered with an error that a retry would get again.
    Refused,
}

impl SkipCause {
    pub(crate) const ALL: [Self; 6] =
        [Self::Payload, Self::Malformed, Self::Method, Self::Channels, Self::Header, Self::Refused];

    /// The label `cause` of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Payload => "payload",
            Self::Malformed => "malformed",
            Self::Method => "method",
            Self::Channels => "channels",
            Self::Header => "header",
            Self::Refused => "refused",
        }
    }
}

impl QueueMessage {
    /// The command of a message; `mode` are the headers of publications, for a consumer whose messages are their data.
    ///
    /// # Errors
    /// The cause for which the message is skipped.
    pub(crate) fn command(&self, mode: Option<&PublicationDataMode>) -> Result<Command, SkipCause> {
        let payload = self
            .payload
            .as_ref()
            .filter(|payload| payload.len() <= MESSAGE_BYTES_MAX)
            .ok_or(SkipCause::Payload)?;
        if let Some(mode) = mode {
            return self.publication(mode, payload);
        }
        // JSON is UTF-8 (RFC 8259 §8.1), also in the fields that are ignored.
        let text = str::from_utf8(payload).map_err(|_| SkipCause::Malformed)?;
        if self.method.is_empty() { envelope(text) } else { command(&self.method, text) }
    }

    /// The begin of the payload, for log lines.
    pub(crate) fn payload_excerpt(&self) -> String {
        let payload = self.payload.as_deref().unwrap_or_default();
        let begin = &payload[..payload.len().min(EXCERPT_BYTES_MAX)];
        excerpt(&String::from_utf8_lossy(begin))
    }

    /// The trace of the program that sent the message (W3C Trace Context §3.2).
    pub(crate) fn traceparent(&self) -> Option<&str> {
        self.header(TRACEPARENT)
    }

    fn publication(&self, mode: &PublicationDataMode, data: &Bytes) -> Result<Command, SkipCause> {
        let channels = self.header(&mode.channels).ok_or(SkipCause::Channels)?;
        let delta = self.header(&mode.delta).map_or(Ok(false), switch)?;
        let version = self
            .header(&mode.version)
            .map_or(Ok(0), |text| text.parse().map_err(|_| SkipCause::Header))?;
        let text = |name| self.header(name).unwrap_or_default().to_owned();
        let (idempotency_key, version_epoch) =
            (text(&mode.idempotency_key), text(&mode.version_epoch));
        // Other data is binary.
        let is_json = serde_json::from_slice::<&RawValue>(data).is_ok();
        let (data, b64data) = if is_json {
            (data.clone(), String::new())
        } else {
            (Bytes::new(), STANDARD.encode(data))
        };
        let tags = self.tags(&mode.tags_prefix);
        let mut channels: Vec<String> = channels.split(',').map(str::to_owned).collect();
        Ok(if channels.len() == 1 {
            let channel = channels.remove(0);
            Command::Publish(PublishRequest {
                channel,
                data,
                b64data,
                tags,
                idempotency_key,
                delta,
                version,
                version_epoch,
                ..PublishRequest::default()
            })
        } else {
            Command::Broadcast(BroadcastRequest {
                channels,
                data,
                b64data,
                tags,
                idempotency_key,
                delta,
                version,
                version_epoch,
                ..BroadcastRequest::default()
            })
        })
    }

    /// The value of a header; `None` if it is missing or empty, or has no name because its option is switched off.
    fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name && !name.is_empty());
        values.next().map(|(_, value)| &**value).filter(|value| !value.is_empty())
    }

    fn tags(&self, prefix: &str) -> BTreeMap<String, String> {
        let tag = |(name, value): &(String, String)| {
            let name = name.strip_prefix(prefix).filter(|_| !prefix.is_empty())?;
            Some((name.to_owned(), value.clone()))
        };
        self.headers.iter().filter_map(tag).collect()
    }
}

/// `{"method":"publish","payload":{…}}`; the payload may also be a text with JSON, as Debezium writes columns of JSONB.
#[derive(Deserialize)]
struct EnvelopedCommand<'a> {
    method: String,
    #[serde(borrow)]
    payload: &'a RawValue,
}

fn envelope(text: &str) -> Result<Command, SkipCause> {
    let envelope = serde_json::from_str::<AnyCase<EnvelopedCommand>>(text);
    let AnyCase(envelope) = envelope.map_err(|_| SkipCause::Malformed)?;
    let EnvelopedCommand { method, payload } = envelope;
    if !payload.get().starts_with('"') {
        return command(&method, payload.get());
    }
    let inner: String = serde_json::from_str(payload.get()).map_err(|_| SkipCause::Malformed)?;
    command(&method, &inner)
}

fn command(method: &str, text: &str) -> Result<Command, SkipCause> {
    let method = Method::of_name(method)
        .filter(|method| EXECUTED.contains(method))
        .ok_or(SkipCause::Method)?;
    method.decode(text).map_err(|_| SkipCause::Malformed)
}

/// A switch as Go's `strconv.ParseBool` reads it.
fn switch(text: &str) -> Result<bool, SkipCause> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(SkipCause::Header),
    }
}

/// Most bytes of a payload: as many as a request of the server API may have.
pub(crate) const MESSAGE_BYTES_MAX: usize = BODY_BYTES_MAX;

/// An upper bound of the bytes of the longest excerpt.
const EXCERPT_BYTES_MAX: usize = 512;

/// The header with the trace of a message, which is kept for messages of every form.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// Methods that change something and whose result does not have to be read.
const EXECUTED: [Method; 8] = [
    Method::Publish,
    Method::Append,
    Method::Broadcast,
    Method::Subscribe,
    Method::Unsubscribe,
    Method::Disconnect,
    Method::HistoryRemove,
    Method::Refresh,
];

#[cfg(test)]
mod tests;
