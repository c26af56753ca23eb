//! Where a publication stands in the message that pushes it (client protocol §4).
//! In: an encoding and the bytes of a push. Out: the range of the publication, the same bytes as in a subscribe result.
//! Uses the shape that `publication` writes; never decodes a publication, never searches a payload.
//! The shape of a push changes in `publication`; where its publication is, is found here.

use std::ops::Range;

use prost::decode_length_delimiter;

use crate::encoding::Encoding;

/// Where the publication is in a push that [`encode_publication`](crate::encode_publication) wrote:
/// in JSON the whole object, in Protobuf the message without key and length.
///
/// `None` when the message is no such push.
pub fn publication_in_push(encoding: Encoding, message: &[u8]) -> Option<Range<usize>> {
    match encoding {
        Encoding::Json => in_json(message),
        Encoding::Protobuf => in_protobuf(message),
    }
}

/// The key cannot be part of the channel before it: quotation marks in there are escaped.
fn in_json(message: &[u8]) -> Option<Range<usize>> {
    let key = message.array_windows().position(|bytes| bytes == KEY)?;
    let end = message.len().checked_sub(b"}}".len())?;
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

const KEY: &[u8; 6] = b"\"pub\":";

/// Keys of fields with a length, wire type 2: `Reply.push`, `Push.channel` and `Push.pub`.
const PUSH: u8 = 4 << 3 | 2;
const CHANNEL: u8 = 2 << 3 | 2;
const PUBLICATION: u8 = 4 << 3 | 2;

#[cfg(test)]
mod tests;
