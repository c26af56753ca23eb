//! The one writer of JSON to clients (client protocol §2–§4): a message, straight into a buffer, payloads in place.
//! In: a message through its derived `Serialize`, a sink → out: compact JSON with HTML-safe strings, or `NotJson`.
//! Uses serde's traits, `escape` and `scan`; never serde_json, never a message by name. A payload is looked at once.
//! How values are spelled changes here; which fields are left out is said in `message` and `json`.

use serde::ser::{self, Impossible, Serialize, Serializer};

use crate::error::NotJson;
use crate::escape::put_string;
use crate::scan::{is_line_end, line_ends_in_json};

/// Target of a writer: a buffer, or a counter of the bytes that one would need.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]);

    /// A payload, without its raw line ends (client protocol §2).
    fn payload(&mut self, text: &[u8]) -> Result<(), NotJson>;
}

/// The payloads are checked on the way.
impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn payload(&mut self, text: &[u8]) -> Result<(), NotJson> {
        let line_ends = line_ends_in_json(text).ok_or(NotJson)?;
        put_payload(text, line_ends > 0, self);
        Ok(())
    }
}

/// Measures a message and checks its payloads, so that [`Exact`] need not.
#[derive(Default)]
pub(crate) struct Length {
    pub(crate) bytes: usize,
    pub(crate) has_line_ends: bool,
}

impl Sink for Length {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
    }

    fn payload(&mut self, text: &[u8]) -> Result<(), NotJson> {
        let line_ends = line_ends_in_json(text).ok_or(NotJson)?;
        self.bytes += text.len() - line_ends;
        self.has_line_ends |= line_ends > 0;
        Ok(())
    }
}

/// A buffer for a message that was measured before.
pub(crate) struct Exact {
    pub(crate) out: Vec<u8>,
    has_line_ends: bool,
}

impl Exact {
    pub(crate) fn new(length: &Length) -> Self {
        Self { out: Vec::with_capacity(length.bytes), has_line_ends: length.has_line_ends }
    }
}

impl Sink for Exact {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    fn payload(&mut self, text: &[u8]) -> Result<(), NotJson> {
        put_payload(text, self.has_line_ends, &mut self.out);
        Ok(())
    }
}

fn put_payload(text: &[u8], has_line_ends: bool, out: &mut Vec<u8>) {
    if has_line_ends {
        text.split(|byte| is_line_end(*byte)).for_each(|piece| out.extend_from_slice(piece));
    } else {
        out.extend_from_slice(text);
    }
}

/// Writes one value.
pub(crate) struct Writer<'s, S>(pub(crate) &'s mut S);

/// Kinds of values that no message has. A message that gets one has no JSON, and every test of it says so.
macro_rules! no_message_has {
    ($($method:ident($kind:ty))*) => {
        $(fn $method(self, _: $kind) -> Result<(), NotJson> {
            Err(NotJson)
        })*
    };
}

/// Writes the inside of an object or a list.
pub(crate) struct Members<'s, S> {
    sink: &'s mut S,
    is_empty: bool,
    end: &'static [u8],
}

impl<'s, S: Sink> Members<'s, S> {
    fn begin(sink: &'s mut S, begin: &[u8], end: &'static [u8]) -> Self {
        sink.put(begin);
        Self { sink, is_empty: true, end }
    }

    #[inline]
    fn comma(&mut self) {
        if !self.is_empty {
            self.sink.put(b",");
        }
        self.is_empty = false;
    }

    #[inline]
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotJson> {
        value.serialize(Writer(&mut *self.sink))
    }

    fn close(self) -> Result<(), NotJson> {
        self.sink.put(self.end);
        Ok(())
    }
}

impl<'s, S: Sink> Serializer for Writer<'s, S> {
    type Ok = ();
    type Error = NotJson;
    type SerializeSeq = Members<'s, S>;
    type SerializeMap = Members<'s, S>;
    type SerializeStruct = Members<'s, S>;
    type SerializeTuple = Impossible<(), NotJson>;
    type SerializeTupleStruct = Impossible<(), NotJson>;
    type SerializeTupleVariant = Impossible<(), NotJson>;
    type SerializeStructVariant = Impossible<(), NotJson>;

    fn serialize_bool(self, value: bool) -> Result<(), NotJson> {
        self.0.put(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_u64(self, value: u64) -> Result<(), NotJson> {
        put_decimal(self.0, false, value);
        Ok(())
    }

    fn serialize_i64(self, value: i64) -> Result<(), NotJson> {
        put_decimal(self.0, value < 0, value.unsigned_abs());
        Ok(())
    }

    fn serialize_u32(self, value: u32) -> Result<(), NotJson> {
        self.serialize_u64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), NotJson> {
        self.serialize_i64(value.into())
    }

    fn serialize_str(self, text: &str) -> Result<(), NotJson> {
        put_string(text, |piece| self.0.put(piece));
        Ok(())
    }

    /// A payload.
    fn serialize_bytes(self, text: &[u8]) -> Result<(), NotJson> {
        self.0.payload(text)
    }

    fn serialize_none(self) -> Result<(), NotJson> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NotJson> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NotJson> {
        self.0.put(b"null");
        Ok(())
    }

    fn serialize_seq(self, _count: Option<usize>) -> Result<Members<'s, S>, NotJson> {
        Ok(Members::begin(self.0, b"[", b"]"))
    }

    fn serialize_map(self, _count: Option<usize>) -> Result<Members<'s, S>, NotJson> {
        Ok(Members::begin(self.0, b"{", b"}"))
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'s, S>, NotJson> {
        Ok(Members::begin(self.0, b"{", b"}"))
    }

    no_message_has! {
        serialize_i8(i8) serialize_i16(i16) serialize_u8(u8) serialize_u16(u16)
        serialize_f32(f32) serialize_f64(f64) serialize_char(char) serialize_unit_struct(&'static str)
    }

    fn serialize_unit_variant(self, _: Name, _: u32, _: Name) -> Result<(), NotJson> {
        Err(NotJson)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: Name,
        value: &T,
    ) -> Result<(), NotJson> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: Name,
        _: u32,
        _: Name,
        _: &T,
    ) -> Result<(), NotJson> {
        Err(NotJson)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, NotJson> {
        Err(NotJson)
    }

    fn serialize_tuple_struct(self, _: Name, _: usize) -> Result<Self::SerializeTuple, NotJson> {
        Err(NotJson)
    }

    fn serialize_tuple_variant(
        self,
        _: Name,
        _: u32,
        _: Name,
        _: usize,
    ) -> Result<Self::SerializeTuple, NotJson> {
        Err(NotJson)
    }

    fn serialize_struct_variant(
        self,
        _: Name,
        _: u32,
        _: Name,
        _: usize,
    ) -> Result<Self::SerializeTuple, NotJson> {
        Err(NotJson)
    }
}

impl<S: Sink> ser::SerializeStruct for Members<'_, S> {
    type Ok = ();
    type Error = NotJson;

    /// Names of fields need no escape.
    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: Name,
        value: &T,
    ) -> Result<(), NotJson> {
        self.sink.put(if self.is_empty { b"\"" } else { b",\"" });
        self.is_empty = false;
        self.sink.put(key.as_bytes());
        self.sink.put(b"\":");
        self.value(value)
    }

    fn end(self) -> Result<(), NotJson> {
        self.close()
    }
}

impl<S: Sink> ser::SerializeSeq for Members<'_, S> {
    type Ok = ();
    type Error = NotJson;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotJson> {
        self.comma();
        self.value(value)
    }

    fn end(self) -> Result<(), NotJson> {
        self.close()
    }
}

impl<S: Sink> ser::SerializeMap for Members<'_, S> {
    type Ok = ();
    type Error = NotJson;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NotJson> {
        self.comma();
        self.value(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotJson> {
        self.sink.put(b":");
        self.value(value)
    }

    fn end(self) -> Result<(), NotJson> {
        self.close()
    }
}

fn put_decimal(sink: &mut impl Sink, is_negative: bool, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    while start == digits.len() || value > 0 {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    if is_negative {
        sink.put(b"-");
    }
    sink.put(&digits[start..]);
}

/// Name of a type, a variant or a field.
type Name = &'static str;

#[cfg(test)]
mod tests;
