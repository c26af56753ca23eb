//! The headers and the query of requests.
//! In: heads of requests → out: configurations, appends, reads; or the refusal of what does not follow the protocol.
//! Pure. Never: streams, bodies.
//! Changed here: the grammar of headers. Lifetimes are in `lifetime`, offsets in `offset`.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;

use crate::header::{
    FORK, PRODUCER_EPOCH, PRODUCER_ID, PRODUCER_SEQ, STREAM_CLOSED, STREAM_EXPIRES_AT, STREAM_SEQ,
    STREAM_TTL,
};
use crate::lifetime::StreamLifetime;
use crate::offset::ReadStart;
use crate::response::{ErrorResponse, bad_request};
use crate::stream::{ProducerTriple, StreamAppend, StreamConfig};

/// A read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadQuery {
    pub(crate) start: ReadStart,
    pub(crate) live: Option<LiveMode>,
    pub(crate) cursor: Option<u64>,
}

/// How a read waits for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LiveMode {
    LongPoll,
    Sse,
}

/// The configuration that a PUT asks for.
///
/// # Errors
/// 400 for a wrong header, 501 for a fork.
pub(crate) fn config(headers: &HeaderMap) -> Result<StreamConfig, ErrorResponse> {
    if FORK.iter().any(|name| headers.contains_key(name)) {
        return Err(ErrorResponse::new(501, "this server has no forks of streams"));
    }
    let ttl = text(headers, &STREAM_TTL)?;
    let until = text(headers, &STREAM_EXPIRES_AT)?;
    let lifetime = StreamLifetime::parse(ttl, until).map_err(bad_request)?;
    let content_type = text(headers, &CONTENT_TYPE)?
        .map(str::trim)
        .filter(|one| !one.is_empty())
        .unwrap_or("application/octet-stream")
        .to_owned();
    Ok(StreamConfig { content_type, lifetime, is_closed: closes(headers) })
}

/// The append that a POST asks for.
///
/// # Errors
/// 400 for a wrong header, or without content and without `Stream-Closed`.
pub(crate) fn append(headers: &HeaderMap, is_empty: bool) -> Result<StreamAppend, ErrorResponse> {
    let closes = closes(headers);
    if is_empty && !closes {
        return Err(bad_request("the body is empty; send content, or Stream-Closed: true"));
    }
    let content_type = text(headers, &CONTENT_TYPE)?.map(str::trim).filter(|one| !one.is_empty());
    if !is_empty && content_type.is_none() {
        return Err(bad_request("send the Content-Type of the stream"));
    }
    Ok(StreamAppend {
        content_type: content_type.filter(|_| !is_empty).map(str::to_owned),
        closes,
        seq: text(headers, &STREAM_SEQ)?.map(str::to_owned),
        producer: producer(headers)?,
    })
}

fn producer(headers: &HeaderMap) -> Result<Option<ProducerTriple>, ErrorResponse> {
    let triple = [&PRODUCER_ID, &PRODUCER_EPOCH, &PRODUCER_SEQ].map(|name| text(headers, name));
    let [id, epoch, seq] = triple;
    let (id, epoch, seq) = match (id?, epoch?, seq?) {
        (None, None, None) => return Ok(None),
        (Some(id), Some(epoch), Some(seq)) if !id.is_empty() => (id, epoch, seq),
        _ => return Err(bad_request("send Producer-Id, Producer-Epoch and Producer-Seq, or none")),
    };
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| is_number && *number <= NUMBER_MAX)
    };
    match (number(epoch), number(seq)) {
        (Some(epoch), Some(seq)) => Ok(Some(ProducerTriple { id: id.into(), epoch, seq })),
        _ => Err(bad_request("Producer-Epoch and Producer-Seq are integers from 0 to 2^53 - 1")),
    }
}

/// The read that a GET asks for.
///
/// # Errors
/// 400 for a wrong query.
pub(crate) fn read(query: &str) -> Result<ReadQuery, ErrorResponse> {
    let offset = parameter(query, "offset")?;
    let start = match offset.as_deref() {
        None => ReadStart::Beginning,
        Some(text) => ReadStart::parse(text).ok_or(bad_request(NO_OFFSET))?,
    };
    let live = match parameter(query, "live")?.as_deref() {
        None => None,
        Some("long-poll") => Some(LiveMode::LongPoll),
        Some("sse") => Some(LiveMode::Sse),
        Some(_) => return Err(bad_request("live is neither long-poll nor sse")),
    };
    if live.is_some() && offset.is_none() {
        return Err(bad_request("a live read needs an offset; -1 is the beginning"));
    }
    let cursor = parameter(query, "cursor")?.and_then(|cursor| cursor.parse().ok());
    Ok(ReadQuery { start, live, cursor })
}

/// The value of a parameter.
///
/// # Errors
/// 400 for one that is repeated.
pub(crate) fn parameter<'a>(
    query: &'a str,
    name: &str,
) -> Result<Option<Cow<'a, str>>, ErrorResponse> {
    let pairs = query.split('&').filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    });
    let mut values = pairs.map(|value| percent_decode_str(value).decode_utf8_lossy());
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(bad_request(&format!("the query has {name} twice"))),
        (value, None) => Ok(value),
    }
}

/// Any other value than `true` is as if absent.
fn closes(headers: &HeaderMap) -> bool {
    let value = headers.get(STREAM_CLOSED);
    value.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// The value of a header.
///
/// # Errors
/// 400 for one that is not ASCII, or long.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ErrorResponse> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    match value.to_str() {
        Ok(text) if text.len() <= HEADER_BYTES_MAX => Ok(Some(text)),
        _ => Err(bad_request(&format!(
            "{name} is longer than {HEADER_BYTES_MAX} bytes, or not ASCII"
        ))),
    }
}

const NO_OFFSET: &str =
    "the offset is none of this server; send -1, now, or a Stream-Next-Offset of this stream";
/// Longest value of a header that a stream keeps.
const HEADER_BYTES_MAX: usize = 256;
/// Largest epoch and number of a producer.
const NUMBER_MAX: u64 = (1 << 53) - 1;

#[cfg(test)]
mod tests;
