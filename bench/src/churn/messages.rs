//! The JSON protocol of a client that recovers: connect, subscribe from a position, publications with offsets.
//! In: streams → the commands; messages → what they mean.
//! Uses serde_json only, never Fanwire's own protocol crate: a checker must not share the code it checks.
//! Changed here: what is understood of a message; when it is sent or expected lives in `client`.

use anyhow::{Result, bail};
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt::Write as _;

use super::stream::{Answer, Stream};

/// The meaning of a message of the server for the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    Ping,
    Connected,
    /// The reply to the subscribe command with this number, counted from 0, and what was missed.
    Subscribed(usize, Answer, Vec<Publication>),
    Publication(Cow<'a, str>, Publication),
    /// The server ended a subscription or says that it will end the connection.
    Ended,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Publication {
    #[serde(default)]
    pub offset: u64,
    pub data: Data,
}

/// The payload of the scenario: which publication of its channel it is, from 1.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Data {
    pub n: u64,
}

/// One payload: connect, then a subscribe for each channel, from its position where it has one.
pub fn commands<'a>(subscriptions: impl Iterator<Item = (&'a str, &'a Stream)>) -> Vec<u8> {
    let mut text = r#"{"id":1,"connect":{}}"#.to_owned();
    for (number, (channel, stream)) in subscriptions.enumerate() {
        let id = number as u64 + FIRST_SUBSCRIBE_ID;
        let _ = write!(text, "\n{{\"id\":{id},\"subscribe\":{{\"channel\":\"{channel}\"");
        if let Some((epoch, offset)) = stream.position() {
            let _ = write!(text, r#","recover":true,"epoch":"{epoch}","offset":{offset}"#);
        }
        text.push_str("}}");
    }
    text.into_bytes()
}

/// # Errors
/// An error reply, or anything that the scenario does not ask for.
pub fn message(text: &[u8]) -> Result<Message<'_>> {
    let reply: Reply<'_> = serde_json::from_slice(text)?;
    Ok(match reply {
        Reply { id: Some(1), connect: Some(_), .. } => Message::Connected,
        Reply { id: Some(id @ FIRST_SUBSCRIBE_ID..), subscribe: Some(subscribed), .. } => {
            let Subscribed { offset, epoch, recovered, publications } = subscribed;
            let answer = Answer { offset, epoch, recovered };
            Message::Subscribed((id - FIRST_SUBSCRIBE_ID) as usize, answer, publications)
        }
        Reply { push: Some(Push { channel, publication: Some(publication), .. }), .. } => {
            Message::Publication(channel, publication)
        }
        Reply { push: Some(_), .. } => Message::Ended,
        Reply { id: None, .. } => Message::Ping,
        _ => bail!("unexpected: {}", String::from_utf8_lossy(text)),
    })
}

#[derive(Deserialize)]
struct Reply<'a> {
    id: Option<u64>,
    connect: Option<serde::de::IgnoredAny>,
    subscribe: Option<Subscribed>,
    #[serde(borrow)]
    push: Option<Push<'a>>,
}

#[derive(Deserialize)]
struct Subscribed {
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    epoch: String,
    #[serde(default)]
    recovered: bool,
    #[serde(default)]
    publications: Vec<Publication>,
}

#[derive(Deserialize)]
struct Push<'a> {
    #[serde(borrow, default)]
    channel: Cow<'a, str>,
    #[serde(rename = "pub")]
    publication: Option<Publication>,
}

/// The connect command has id 1.
const FIRST_SUBSCRIBE_ID: u64 = 2;

#[cfg(test)]
mod tests;
