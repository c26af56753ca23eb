//! The client protocol as a subscriber speaks it, JSON and Protobuf.
//! In: channel names → the commands that connect and subscribe; payloads → messages → replies and publications.
//! Uses serde_json and `protobuf`, never Fanwire's own protocol crate: a checker must not share the code it checks.
//! Changed here: what is understood of a message; when it is sent or expected lives in `connection`.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

use super::{SubscribeForm, frame, protobuf};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encoding {
    Json,
    Protobuf,
}

/// A publication as one subscriber got it; `data` is byte for byte what was published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedPublication<'a> {
    pub channel: Cow<'a, str>,
    pub data: &'a [u8],
}

impl Encoding {
    pub fn opcode(self) -> u8 {
        match self {
            Encoding::Json => frame::TEXT,
            Encoding::Protobuf => frame::BINARY,
        }
    }

    /// The request target that chooses this encoding without a subprotocol.
    pub fn path(self) -> &'static str {
        match self {
            Encoding::Json => "/connection/websocket",
            Encoding::Protobuf => "/connection/websocket?format=protobuf",
        }
    }

    /// Ping and pong are the same bytes: a message without any field.
    pub fn pong(self) -> &'static [u8] {
        match self {
            Encoding::Json => b"{}",
            Encoding::Protobuf => &[0],
        }
    }

    pub fn is_ping(self, message: &[u8]) -> bool {
        match self {
            Encoding::Json => message == b"{}",
            Encoding::Protobuf => message.is_empty(),
        }
    }

    /// Takes the next message from a frame's payload; `None` at the end.
    ///
    /// # Errors
    /// A Protobuf length beyond the end.
    pub fn next_message<'a>(self, payload: &mut &'a [u8]) -> Result<Option<&'a [u8]>> {
        if payload.is_empty() {
            return Ok(None);
        }
        if self == Encoding::Protobuf {
            return protobuf::delimited(payload).map(Some);
        }
        let end = payload.iter().position(|byte| *byte == b'\n');
        let message = &payload[..end.unwrap_or(payload.len())];
        *payload = end.map_or(&[], |end| &payload[end + 1..]);
        Ok(Some(message))
    }

    /// One payload with the connect command (id 1) and a subscribe command per channel (ids 2 and up).
    pub fn commands(
        self,
        token: Option<&str>,
        channels: &[String],
        subscribe: SubscribeForm,
    ) -> Vec<u8> {
        match self {
            Encoding::Json => json_commands(token, channels, subscribe),
            Encoding::Protobuf => protobuf_commands(token, channels, subscribe),
        }
    }

    /// A publish command; `data` is JSON for `Json`.
    pub fn publish_command(self, id: u32, channel: &str, data: &[u8]) -> Vec<u8> {
        match self {
            Encoding::Json => {
                let name = serde_json::Value::from(channel);
                let data = String::from_utf8_lossy(data);
                format!("{{\"id\":{id},\"publish\":{{\"channel\":{name},\"data\":{data}}}}}")
                    .into_bytes()
            }
            Encoding::Protobuf => {
                let mut request = Vec::new();
                let mut command = Vec::new();
                let mut message = Vec::new();
                protobuf::push_bytes(PUBLISH_CHANNEL, channel.as_bytes(), &mut request);
                protobuf::push_bytes(PUBLISH_DATA, data, &mut request);
                protobuf::push_number(COMMAND_ID, u64::from(id), &mut command);
                protobuf::push_bytes(COMMAND_PUBLISH, &request, &mut command);
                protobuf::push_delimited(&command, &mut message);
                message
            }
        }
    }

    /// The server's version, if the message is a connect reply that has one.
    pub fn server_version(self, message: &[u8]) -> Option<String> {
        let version = match self {
            Encoding::Json => {
                let reply: serde_json::Value = serde_json::from_slice(message).ok()?;
                reply["connect"]["version"].as_str()?.to_owned()
            }
            Encoding::Protobuf => {
                let connect = protobuf::bytes_of(message, REPLY_CONNECT).ok()??;
                let version = protobuf::bytes_of(connect, CONNECT_VERSION).ok()??;
                String::from_utf8_lossy(version).into_owned()
            }
        };
        Some(version).filter(|version| !version.is_empty())
    }

    /// The id of a reply without error; `None` for a push or a ping.
    ///
    /// # Errors
    /// An error reply, or bytes that are no message.
    pub fn reply_id(self, message: &[u8]) -> Result<Option<u32>> {
        match self {
            Encoding::Json => json_reply_id(message),
            Encoding::Protobuf => protobuf_reply_id(message),
        }
    }

    /// The channel of a publication, found without reading the whole message; `None` if it is none.
    pub fn channel(self, message: &[u8]) -> Option<&[u8]> {
        match self {
            Encoding::Json => {
                let name = message.strip_prefix(br#"{"push":{"channel":""#)?;
                name.split(|byte| *byte == b'"').next()
            }
            Encoding::Protobuf => {
                let push = protobuf::bytes_of(message, REPLY_PUSH).ok()??;
                protobuf::bytes_of(push, PUSH_CHANNEL).ok()?
            }
        }
    }

    /// The whole publication.
    ///
    /// # Errors
    /// Anything else than a push with a publication.
    pub fn publication(self, message: &[u8]) -> Result<ReceivedPublication<'_>> {
        match self {
            Encoding::Json => {
                let reply: JsonReply<'_> = serde_json::from_slice(message)?;
                let push = reply.push.context("a reply without push")?;
                let data = push.publication.context("a push without publication")?.data.get();
                Ok(ReceivedPublication { channel: push.channel, data: data.as_bytes() })
            }
            Encoding::Protobuf => {
                let push =
                    protobuf::bytes_of(message, REPLY_PUSH)?.context("a reply without push")?;
                let channel = protobuf::bytes_of(push, PUSH_CHANNEL)?.unwrap_or_default();
                let publication = protobuf::bytes_of(push, PUSH_PUBLICATION)?
                    .context("a push without publication")?;
                let data = protobuf::bytes_of(publication, PUBLICATION_DATA)?.unwrap_or_default();
                Ok(ReceivedPublication { channel: std::str::from_utf8(channel)?.into(), data })
            }
        }
    }
}

#[derive(Deserialize)]
struct JsonReply<'a> {
    #[serde(default)]
    id: u32,
    error: Option<serde_json::Value>,
    #[serde(borrow)]
    push: Option<JsonPush<'a>>,
}

#[derive(Deserialize)]
struct JsonPush<'a> {
    #[serde(borrow)]
    channel: Cow<'a, str>,
    #[serde(borrow, rename = "pub")]
    publication: Option<JsonPublication<'a>>,
}

#[derive(Deserialize)]
struct JsonPublication<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

fn json_commands(token: Option<&str>, channels: &[String], subscribe: SubscribeForm) -> Vec<u8> {
    let form = match subscribe {
        SubscribeForm::Live => "",
        SubscribeForm::Recovering => r#","recover":true"#,
        SubscribeForm::Map => r#","type":1,"phase":2"#,
    };
    let field = token.map(|token| format!(",\"token\":{}", serde_json::Value::from(token)));
    let token = field.unwrap_or_default();
    let mut commands = format!(r#"{{"id":1,"connect":{{"name":"bench"{token}}}}}"#);
    for (channel, id) in channels.iter().zip(2..) {
        let name = serde_json::Value::from(channel.as_str());
        let subscribe = format!("\n{{\"id\":{id},\"subscribe\":{{\"channel\":{name}{form}}}}}");
        commands.push_str(&subscribe);
    }
    commands.into_bytes()
}

/// The first message of a unidirectional connection: a connect request that asks for channels.
pub fn connect_request(token: Option<&str>, channels: &[String]) -> Vec<u8> {
    let subs: serde_json::Map<_, _> =
        channels.iter().map(|channel| (channel.clone(), serde_json::json!({}))).collect();
    let mut request = serde_json::json!({ "name": "bench", "subs": subs });
    if let Some(token) = token {
        request["token"] = token.into();
    }
    request.to_string().into_bytes()
}

fn json_reply_id(message: &[u8]) -> Result<Option<u32>> {
    let reply: JsonReply<'_> = serde_json::from_slice(message)?;
    if let Some(error) = reply.error {
        bail!("reply {} is the error {error}", reply.id);
    }
    Ok(Some(reply.id).filter(|id| *id > 0))
}

fn protobuf_commands(
    token: Option<&str>,
    channels: &[String],
    subscribe: SubscribeForm,
) -> Vec<u8> {
    let mut commands = Vec::new();
    let mut command = Vec::new();
    let mut request = Vec::new();
    protobuf::push_number(COMMAND_ID, 1, &mut command);
    if let Some(token) = token {
        protobuf::push_bytes(CONNECT_TOKEN, token.as_bytes(), &mut request);
    }
    protobuf::push_bytes(COMMAND_CONNECT, &request, &mut command);
    protobuf::push_delimited(&command, &mut commands);
    for (channel, id) in channels.iter().zip(2..) {
        command.clear();
        request.clear();
        protobuf::push_bytes(SUBSCRIBE_CHANNEL, channel.as_bytes(), &mut request);
        match subscribe {
            SubscribeForm::Live => {}
            SubscribeForm::Recovering => protobuf::push_number(SUBSCRIBE_RECOVER, 1, &mut request),
            SubscribeForm::Map => {
                protobuf::push_number(SUBSCRIBE_TYPE, 1, &mut request);
                protobuf::push_number(SUBSCRIBE_PHASE, 2, &mut request);
            }
        }
        protobuf::push_number(COMMAND_ID, id, &mut command);
        protobuf::push_bytes(COMMAND_SUBSCRIBE, &request, &mut command);
        protobuf::push_delimited(&command, &mut commands);
    }
    commands
}

fn protobuf_reply_id(mut message: &[u8]) -> Result<Option<u32>> {
    if let Some(error) = protobuf::bytes_of(message, REPLY_ERROR)? {
        let text = protobuf::bytes_of(error, ERROR_MESSAGE)?.unwrap_or_default();
        bail!("an error reply: {}", String::from_utf8_lossy(text));
    }
    while let Some(field) = protobuf::next_field(&mut message)? {
        if let protobuf::Field::Varint(REPLY_ID, id) = field {
            return Ok(Some(u32::try_from(id)?));
        }
    }
    Ok(None)
}

const COMMAND_ID: u64 = 1;
const COMMAND_CONNECT: u64 = 4;
const COMMAND_SUBSCRIBE: u64 = 5;
const COMMAND_PUBLISH: u64 = 7;
const CONNECT_TOKEN: u64 = 1;
const SUBSCRIBE_CHANNEL: u64 = 1;
const SUBSCRIBE_RECOVER: u64 = 3;
const SUBSCRIBE_TYPE: u64 = 15;
const SUBSCRIBE_PHASE: u64 = 16;
const PUBLISH_CHANNEL: u64 = 1;
const PUBLISH_DATA: u64 = 2;
const REPLY_ID: u64 = 1;
const REPLY_ERROR: u64 = 2;
const REPLY_PUSH: u64 = 4;
const REPLY_CONNECT: u64 = 5;
const CONNECT_VERSION: u64 = 2;
const ERROR_MESSAGE: u64 = 2;
const PUSH_CHANNEL: u64 = 2;
const PUSH_PUBLICATION: u64 = 4;
const PUBLICATION_DATA: u64 = 4;

#[cfg(test)]
mod tests;
