//! A publication in Protobuf, written field by field (client protocol §4, `proto/client.proto`).
//! In: a publication. Out: its length, and then its bytes into whatever takes bytes: those of prost.
//! Uses nothing but bytes; never allocates. Code of prost measures a message once per level around it; this, once.
//! A field of a publication that is to be sent or stored changes here too; tests compare it with prost's bytes.

use bytes::BufMut;

use crate::message::{ClientInfo, Publication};

/// Bytes that [`put_publication`] puts.
pub fn publication_length(publication: &Publication) -> usize {
    let info = publication.info.as_ref().map_or(0, |info| field_length(info_length(info)));
    let tags = publication.tags.iter().map(|(key, value)| field_length(tag_length(key, value)));
    text_length(&publication.data)
        + info
        + number_length(publication.offset)
        + tags.sum::<usize>()
        + 2 * usize::from(publication.delta)
        + number_length(publication.time as u64)
        + text_length(publication.channel.as_bytes())
        + text_length(publication.key.as_bytes())
        + 2 * usize::from(publication.removed)
        + number_length(zigzag(publication.score))
        + text_length(publication.epoch.as_bytes())
        + text_length(&publication.prev_data)
        + number_length(publication.version)
        + usize::from(publication.version != 0) // its key has two bytes
}

/// Puts the fields of a publication, without a key and a length in front. They are in the order of their numbers.
pub fn put_publication(publication: &Publication, out: &mut impl BufMut) {
    put_text(4, &publication.data, out);
    if let Some(info) = &publication.info {
        put_head(5, info_length(info), out);
        put_info(info, out);
    }
    put_number(6, publication.offset, out);
    for (key, value) in &publication.tags {
        put_head(7, tag_length(key, value), out);
        put_text(1, key.as_bytes(), out);
        put_text(2, value.as_bytes(), out);
    }
    put_number(8, publication.delta.into(), out);
    put_number(9, publication.time as u64, out);
    put_text(10, publication.channel.as_bytes(), out);
    put_text(11, publication.key.as_bytes(), out);
    put_number(12, publication.removed.into(), out);
    put_number(13, zigzag(publication.score), out);
    put_text(14, publication.epoch.as_bytes(), out);
    put_text(15, &publication.prev_data, out);
    if publication.version != 0 {
        put_varint(16 << 3, out);
        put_varint(publication.version, out);
    }
}

fn info_length(info: &ClientInfo) -> usize {
    let texts = [info.user.as_bytes(), info.client.as_bytes(), &info.conn_info, &info.chan_info];
    texts.map(text_length).iter().sum()
}

fn put_info(info: &ClientInfo, out: &mut impl BufMut) {
    put_text(1, info.user.as_bytes(), out);
    put_text(2, info.client.as_bytes(), out);
    put_text(3, &info.conn_info, out);
    put_text(4, &info.chan_info, out);
}

fn tag_length(key: &str, value: &str) -> usize {
    text_length(key.as_bytes()) + text_length(value.as_bytes())
}

/// Puts the key and the length of a field with a length (wire type 2, numbers up to 15).
#[inline]
pub fn put_head(number: u8, length: usize, out: &mut impl BufMut) {
    out.put_u8(number << 3 | 2);
    put_varint(length as u64, out);
}

/// Bytes of a field with `length` bytes inside (numbers up to 15), its key and length included.
#[inline]
pub fn field_length(length: usize) -> usize {
    1 + varint_length(length as u64) + length
}

/// Puts a field of text or bytes (numbers up to 15), or nothing for none.
#[inline]
pub fn put_text(number: u8, text: &[u8], out: &mut impl BufMut) {
    if !text.is_empty() {
        put_head(number, text.len(), out);
        out.put_slice(text);
    }
}

/// Bytes that [`put_text`] puts.
#[inline]
pub fn text_length(text: &[u8]) -> usize {
    if text.is_empty() { 0 } else { field_length(text.len()) }
}

/// Puts a field with a number (numbers of fields up to 15), or nothing for 0.
#[inline]
pub fn put_number(number: u8, value: u64, out: &mut impl BufMut) {
    if value != 0 {
        out.put_u8(number << 3);
        put_varint(value, out);
    }
}

/// Bytes that [`put_number`] puts.
#[inline]
pub fn number_length(value: u64) -> usize {
    if value == 0 { 0 } else { 1 + varint_length(value) }
}

#[inline]
pub(crate) fn put_varint(mut value: u64, out: &mut impl BufMut) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// A varint has seven bits of the number in each byte.
#[inline]
pub(crate) fn varint_length(value: u64) -> usize {
    1 + (value | 1).ilog2() as usize / 7
}

/// Small numbers of either sign in few bytes (`sint64`).
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

#[cfg(test)]
mod tests;
