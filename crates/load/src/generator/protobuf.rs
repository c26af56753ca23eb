//! The few rules of the Protobuf wire format that a subscriber needs, written from the format's description.
//! In: one encoded message → out: its fields; or field values → bytes.
//! Pure and independent of the generated code: a checker must not share the code it checks.
//! Field numbers of the client protocol live in `messages`.

use anyhow::{Context, Result, bail};

/// One field of a message: its number, and the bytes of a length-delimited one or the value of a varint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field<'a> {
    Bytes(u64, &'a [u8]),
    Varint(u64, u64),
}

/// Takes the field at the front of `bytes`; `None` at the end.
///
/// # Errors
/// A cut field, or a wire type that the client protocol does not use.
pub fn next_field<'a>(bytes: &mut &'a [u8]) -> Result<Option<Field<'a>>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let tag = varint(bytes)?;
    match tag & 7 {
        0 => Ok(Some(Field::Varint(tag >> 3, varint(bytes)?))),
        2 => Ok(Some(Field::Bytes(tag >> 3, delimited(bytes)?))),
        other => bail!("wire type {other} of field {}", tag >> 3),
    }
}

/// The first length-delimited field with this number.
///
/// # Errors
/// As `next_field`.
pub fn bytes_of(mut message: &[u8], number: u64) -> Result<Option<&[u8]>> {
    while let Some(field) = next_field(&mut message)? {
        match field {
            Field::Bytes(found, bytes) if found == number => return Ok(Some(bytes)),
            _ => {}
        }
    }
    Ok(None)
}

/// Takes a length and that many bytes from the front: also the framing of messages in a WebSocket message.
///
/// # Errors
/// Fewer bytes than announced.
pub fn delimited<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8]> {
    let length = usize::try_from(varint(bytes)?)?;
    let (front, rest) = bytes.split_at_checked(length).context("a length beyond the end")?;
    *bytes = rest;
    Ok(front)
}

/// Appends a length-delimited field.
pub fn push_bytes(number: u64, value: &[u8], out: &mut Vec<u8>) {
    push_varint(number << 3 | 2, out);
    push_delimited(value, out);
}

/// Appends a length and the bytes.
pub fn push_delimited(value: &[u8], out: &mut Vec<u8>) {
    push_varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Appends a varint field.
pub fn push_number(number: u64, value: u64, out: &mut Vec<u8>) {
    push_varint(number << 3, out);
    push_varint(value, out);
}

fn push_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().context("a cut varint")?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(value);
        }
    }
    bail!("a varint of more than ten bytes")
}

#[cfg(test)]
mod tests;
