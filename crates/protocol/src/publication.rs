//! The push of a publication, written once per encoding for all subscribers (client protocol §3, §4, §23).
//! In: a channel and a publication. Out: the bytes of the whole message, in one allocation of exactly their size.
//! Uses `json` and prost; never compresses, frames or chooses receivers.
//! What is in a push changes here; how JSON is spelled is `json::writer`, which writes replies too. A test compares all.

use bytes::Bytes;
use prost::{Message as _, encode_length_delimiter, length_delimiter_len};
use serde::Serialize;

use crate::encoding::Encoding;
use crate::json;
use crate::message::Publication;

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
        Encoding::Json => {
            let push = ChannelPush { channel, r#pub: publication };
            json::write_exact(&JsonPush { push }).map(Bytes::from)
        }
        Encoding::Protobuf => Some(encode_protobuf(channel, publication)),
    }
}

/// Whether [`encode_publication`] has a JSON form of a publication; says so without writing it.
pub fn has_json(publication: &Publication) -> bool {
    json::is_writable(publication)
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

/// The push in JSON, without a copy of what is in it.
#[derive(Serialize)]
struct JsonPush<'a> {
    push: ChannelPush<'a>,
}

#[derive(Serialize)]
struct ChannelPush<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    channel: &'a str,
    r#pub: &'a Publication,
}

#[cfg(test)]
mod tests;
