//! The push of a publication, written once per encoding for all subscribers (client protocol §3, §4, §23).
//! In: a channel and a publication. Out: the bytes of the whole message, in one allocation of exactly their size.
//! Uses `json` and `protobuf`; never compresses, frames or chooses receivers.
//! What is in a push changes here; how values are spelled is `json::writer` and `protobuf`.

use bytes::Bytes;
use serde::Serialize;

use crate::encoding::Encoding;
use crate::json;
use crate::message::Publication;
use crate::protobuf::{
    field_length, publication_length, put_head, put_publication, put_varint, varint_length,
};

/// Encodes `{"push":{"channel":…,"pub":…}}`, in Protobuf with its length in front.
///
/// `None` when the encoding is JSON and a payload (`data`, `conn_info`, `chan_info`, `prev_data`) is
/// neither empty nor JSON: JSON subscribers are then disconnected with 3506. An empty payload is
/// left out like every default value. Raw line ends in payloads are removed (client protocol §2).
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
    let publication_length = publication_length(publication);
    let channel_length = if channel.is_empty() { 0 } else { field_length(channel.len()) };
    let push_length = channel_length + field_length(publication_length);
    let reply_length = field_length(push_length);

    let length = varint_length(reply_length as u64) + reply_length;
    let mut out = Vec::with_capacity(length);
    put_varint(reply_length as u64, &mut out);
    put_head(4, push_length, &mut out); // Reply.push
    if !channel.is_empty() {
        put_head(2, channel.len(), &mut out); // Push.channel
        out.extend_from_slice(channel.as_bytes());
    }
    put_head(4, publication_length, &mut out); // Push.pub
    put_publication(publication, &mut out);
    debug_assert_eq!(out.len(), length);
    out.into()
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
