//! The push of a publication, written once per encoding for all subscribers (client protocol §3, §4, §23).
//! In: a channel and a publication. Out: the bytes of the whole message, in one allocation of exactly their size.
//! Uses `scan`, `escape` and prost; never compresses, frames or chooses receivers.
//! The hot path of writing changes here; the slow and plain way to the same bytes is `reply`, and a test compares them.

use bytes::Bytes;
use prost::{Message as _, encode_length_delimiter, length_delimiter_len};

use crate::encoding::Encoding;
use crate::escape::Escaped;
use crate::message::{ClientInfo, Publication};
use crate::scan::newlines_in_json;

/// Encodes `{"push":{"channel":…,"pub":…}}`, in Protobuf with its length in front.
///
/// `None` when the encoding is JSON and a payload (`data`, `conn_info`, `chan_info`, `prev_data`) is
/// neither empty nor JSON: JSON subscribers are then disconnected with 3506. An empty payload is
/// left out like every default value. Raw newlines in payloads are removed (client protocol §2).
pub fn encode_publication(
    encoding: Encoding,
    channel: &str,
    publication: &Publication,
) -> Option<Bytes> {
    match encoding {
        Encoding::Json => encode_json(channel, publication),
        Encoding::Protobuf => Some(encode_protobuf(channel, publication)),
    }
}

/// Whether [`encode_publication`] has a JSON form of a publication; says so without writing it.
pub fn has_json(publication: &Publication) -> bool {
    JsonPush::check("", publication).is_some()
}

fn encode_json(channel: &str, publication: &Publication) -> Option<Bytes> {
    let push = JsonPush::check(channel, publication)?;
    let mut length = Length(0);
    push.write(&mut length);
    let mut out = Vec::with_capacity(length.0);
    push.write(&mut out);
    debug_assert_eq!(out.len(), length.0);
    Some(out.into())
}

fn encode_protobuf(channel: &str, publication: &Publication) -> Bytes {
    let delimited = |length: usize| 1 + length_delimiter_len(length) + length;
    let publication_length = publication.encoded_len();
    let channel_length = if channel.is_empty() { 0 } else { delimited(channel.len()) };
    let push_length = channel_length + delimited(publication_length);
    let reply_length = delimited(push_length);

    let mut out = Vec::with_capacity(length_delimiter_len(reply_length) + reply_length);
    put_length(&mut out, reply_length);
    out.push(key(4)); // Reply.push
    put_length(&mut out, push_length);
    if !channel.is_empty() {
        out.push(key(2)); // Push.channel
        put_length(&mut out, channel.len());
        out.extend_from_slice(channel.as_bytes());
    }
    out.push(key(4)); // Push.pub
    put_length(&mut out, publication_length);
    publication.encode(&mut out).expect("a Vec grows");
    out.into()
}

/// The key of a field with a length, wire type 2. Fields above 15 would need two bytes.
const fn key(field: u8) -> u8 {
    field << 3 | 2
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    encode_length_delimiter(length, out).expect("a Vec grows");
}

/// A publication whose payloads are known to be JSON.
struct JsonPush<'a> {
    channel: &'a str,
    publication: &'a Publication,
    data: Payload<'a>,
    prev_data: Payload<'a>,
    info: Option<JsonInfo<'a>>,
}

impl<'a> JsonPush<'a> {
    fn check(channel: &'a str, publication: &'a Publication) -> Option<Self> {
        let info = match &publication.info {
            Some(info) => Some(JsonInfo::check(info)?),
            None => None,
        };
        let data = Payload::check(&publication.data)?;
        let prev_data = Payload::check(&publication.prev_data)?;
        Some(Self { channel, publication, data, prev_data, info })
    }

    fn write(&self, sink: &mut impl Sink) {
        sink.put(b"{\"push\":");
        let mut push = Object::begin(sink);
        push.text("\"channel\":", self.channel);
        push.key("\"pub\":");
        self.write_publication(push.sink);
        push.end();
        sink.put(b"}");
    }

    /// Fields in the order of their numbers, as everywhere.
    fn write_publication(&self, sink: &mut impl Sink) {
        let publication = self.publication;
        let mut object = Object::begin(sink);
        object.payload("\"data\":", self.data);
        if let Some(info) = &self.info {
            object.key("\"info\":");
            info.write(object.sink);
        }
        object.number("\"offset\":", false, publication.offset);
        if !publication.tags.is_empty() {
            object.key("\"tags\":");
            write_tags(publication, object.sink);
        }
        object.truth("\"delta\":", publication.delta);
        object.number("\"time\":", publication.time < 0, publication.time.unsigned_abs());
        object.text("\"channel\":", &publication.channel);
        object.text("\"key\":", &publication.key);
        object.truth("\"removed\":", publication.removed);
        object.number("\"score\":", publication.score < 0, publication.score.unsigned_abs());
        object.text("\"epoch\":", &publication.epoch);
        object.payload("\"prev_data\":", self.prev_data);
        object.number("\"version\":", false, publication.version);
        object.end();
    }
}

fn write_tags(publication: &Publication, sink: &mut impl Sink) {
    let mut open = "{";
    for (key, value) in &publication.tags {
        sink.put(open.as_bytes());
        put_string(sink, key);
        sink.put(b":");
        put_string(sink, value);
        open = ",";
    }
    sink.put(b"}");
}

/// The publisher, with payloads known to be JSON. `user` and `client` are always there.
struct JsonInfo<'a> {
    info: &'a ClientInfo,
    conn_info: Payload<'a>,
    chan_info: Payload<'a>,
}

impl<'a> JsonInfo<'a> {
    fn check(info: &'a ClientInfo) -> Option<Self> {
        let conn_info = Payload::check(&info.conn_info)?;
        let chan_info = Payload::check(&info.chan_info)?;
        Some(Self { info, conn_info, chan_info })
    }

    fn write(&self, sink: &mut impl Sink) {
        let mut object = Object::begin(sink);
        object.key("\"user\":");
        put_string(object.sink, &self.info.user);
        object.key("\"client\":");
        put_string(object.sink, &self.info.client);
        object.payload("\"conn_info\":", self.conn_info);
        object.payload("\"chan_info\":", self.chan_info);
        object.end();
    }
}

/// JSON to be embedded, or nothing.
#[derive(Clone, Copy)]
struct Payload<'a> {
    text: &'a [u8],
    has_newlines: bool,
}

impl<'a> Payload<'a> {
    fn check(text: &'a [u8]) -> Option<Self> {
        let newlines = if text.is_empty() { 0 } else { newlines_in_json(text)? };
        Some(Self { text, has_newlines: newlines > 0 })
    }
}

/// An object being written: each field puts its key only if its value is not the default.
struct Object<'s, S> {
    sink: &'s mut S,
    is_empty: bool,
}

impl<'s, S: Sink> Object<'s, S> {
    fn begin(sink: &'s mut S) -> Self {
        sink.put(b"{");
        Self { sink, is_empty: true }
    }

    fn end(self) {
        self.sink.put(b"}");
    }

    /// `key` comes with its quotes and colon.
    fn key(&mut self, key: &'static str) {
        if !self.is_empty {
            self.sink.put(b",");
        }
        self.is_empty = false;
        self.sink.put(key.as_bytes());
    }

    fn text(&mut self, key: &'static str, text: &str) {
        if !text.is_empty() {
            self.key(key);
            put_string(self.sink, text);
        }
    }

    fn truth(&mut self, key: &'static str, value: bool) {
        if value {
            self.key(key);
            self.sink.put(b"true");
        }
    }

    fn number(&mut self, key: &'static str, is_negative: bool, value: u64) {
        if value != 0 {
            self.key(key);
            self.sink.put(if is_negative { b"-" } else { b"" });
            put_decimal(self.sink, value);
        }
    }

    fn payload(&mut self, key: &'static str, payload: Payload<'_>) {
        if payload.text.is_empty() {
            return;
        }
        self.key(key);
        if payload.has_newlines {
            payload.text.split(|byte| *byte == b'\n').for_each(|piece| self.sink.put(piece));
        } else {
            self.sink.put(payload.text);
        }
    }
}

/// What is written into: first a counter of bytes, then a buffer of exactly that size.
trait Sink {
    fn put(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

struct Length(usize);

impl Sink for Length {
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }
}

fn put_string(sink: &mut impl Sink, text: &str) {
    sink.put(b"\"");
    Escaped::new(text).for_each(|piece| sink.put(piece));
    sink.put(b"\"");
}

fn put_decimal(sink: &mut impl Sink, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    while start == digits.len() || value > 0 {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    sink.put(&digits[start..]);
}

#[cfg(test)]
mod tests;
