//! Range of a push in its message, and of a publication in its push (client protocol §4, §25).
//! In: an encoding and the bytes of a message. Out: the push as unidirectional transports send it; the range of the publication.
//! Uses the shape that `reply` and `publication` write; never decodes a push, never searches a payload.
//! The shape of a push changes in `publication` and `reply`; where its parts are, is found here.

use std::ops::Range;

use prost::decode_length_delimiter;

use crate::encoding::{Encoding, ping};

/// The push in a message that has nothing else, without the envelope around it: the same bytes, so that a message encoded
/// once serves bidirectional and unidirectional clients. In Protobuf also without its length. A ping is an empty push.
///
/// `None` when the message is neither a push nor a ping, as this crate writes them.
pub fn bare_push(encoding: Encoding, message: &[u8]) -> Option<&[u8]> {
    match encoding {
        Encoding::Json if message == ping(encoding) => Some(message),
        Encoding::Json => message.strip_prefix(PUSH_KEY)?.strip_suffix(b"}"),
        Encoding::Protobuf => {
            let mut rest = message;
            if take_length(&mut rest)? != rest.len() {
                return None;
            }
            let is_push = rest.is_empty() || take_field(PUSH, &mut rest)? == rest.len();
            is_push.then_some(rest)
        }
    }
}

/// Returns the range of the publication in a push that [`encode_publication`](crate::encode_publication) wrote: in JSON
/// the whole object, in Protobuf the message without key and length.
///
/// `None` when the message is no such push.
pub fn publication_in_push(encoding: Encoding, message: &[u8]) -> Option<Range<usize>> {
    match encoding {
        Encoding::Json => in_json(message, b"}}"),
        Encoding::Protobuf => in_protobuf(message),
    }
}

/// Returns the range of the publication in a [`bare_push`] in JSON, which may have bytes without quotation marks before it.
///
/// `None` when there is none.
pub fn publication_in_bare_push(push: &[u8]) -> Option<Range<usize>> {
    in_json(push, b"}")
}

/// The key cannot be part of the channel before it: quotation marks in there are escaped.
fn in_json(message: &[u8], behind: &[u8]) -> Option<Range<usize>> {
    let key = message.array_windows().position(|bytes| bytes == KEY)?;
    let end = message.len().checked_sub(behind.len())?;
    let range = key + KEY.len()..end;
    message.get(range.clone())?.starts_with(b"{").then_some(range)
}

fn in_protobuf(message: &[u8]) -> Option<Range<usize>> {
    let mut rest = message;
    if take_length(&mut rest)? != rest.len() || take_field(PUSH, &mut rest)? != rest.len() {
        return None;
    }
    if rest.first() == Some(&CHANNEL) {
        let length = take_field(CHANNEL, &mut rest)?;
        rest = rest.get(length..)?;
    }
    let length = take_field(PUBLICATION, &mut rest)?;
    (length == rest.len()).then(|| message.len() - length..message.len())
}

/// Takes a field's key and length.
fn take_field(key: u8, rest: &mut &[u8]) -> Option<usize> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    if *first == key { take_length(rest) } else { None }
}

fn take_length(rest: &mut &[u8]) -> Option<usize> {
    decode_length_delimiter(rest).ok()
}

/// The envelope of a push in JSON, up to the push.
const PUSH_KEY: &[u8] = b"{\"push\":";

const KEY: &[u8; 6] = b"\"pub\":";

/// Keys of fields with a length, wire type 2: `Reply.push`, `Push.channel` and `Push.pub`.
const PUSH: u8 = 4 << 3 | 2;
const CHANNEL: u8 = 2 << 3 | 2;
const PUBLICATION: u8 = 4 << 3 | 2;

#[cfg(test)]
mod tests;
