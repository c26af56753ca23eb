//! Writes serde's data model as a Protobuf message, by the table of its fields.
//! In: a serialisable value and a table → out: bytes. Default values are left out, except in lists and maps.
//! Pure. Never: a field that the table does not have, which is an error.
//! Changed here: the wire format (<https://protobuf.dev/programming-guides/encoding>). Numbers of fields: `proto/api.proto`.

use serde::ser::{
    Error as _, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer,
};

use super::Error;
use super::schema::{Field, Kind, MessageTable};

/// The bytes of a message.
///
/// # Errors
/// The value has a field that the message does not have, or a type that no field can have.
pub(super) fn message(
    value: &impl Serialize,
    message: &'static MessageTable,
) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    value.serialize(Writer {
        out: &mut out,
        kind: Kind::Message(message),
        number: None,
        is_item: true,
    })?;
    Ok(out)
}

/// Writes one value.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    kind: Kind,
    /// `None` for the outermost message, which has no tag and no length.
    number: Option<u32>,
    /// Default values of items are written.
    is_item: bool,
}

impl<'a> Writer<'a> {
    fn of(out: &'a mut Vec<u8>, field: &'static Field, is_item: bool) -> Self {
        Self { out, kind: field.kind, number: Some(field.number), is_item }
    }

    fn tag(&mut self, wire_type: u32) {
        if let Some(number) = self.number {
            varint(self.out, u64::from(number << 3 | wire_type));
        }
    }

    fn number(mut self, value: u64) -> Result<(), Error> {
        if matches!(self.kind, Kind::Text | Kind::Bytes | Kind::Double | Kind::Message(_)) {
            return Err(Error::custom("a number in a field of another kind"));
        }
        if value != 0 || self.is_item {
            self.tag(0);
            varint(self.out, value);
        }
        Ok(())
    }

    /// Begins an embedded message.
    fn begin(mut self) -> Result<MessageWriter<'a>, Error> {
        let Kind::Message(message) = self.kind else {
            return Err(Error::custom("a message in a field of another kind"));
        };
        self.tag(2);
        let start = self.number.map(|_| begin(self.out));
        Ok(MessageWriter { out: self.out, message, start })
    }

    fn list(self) -> Self {
        Self { is_item: true, ..self }
    }
}

/// Reserves one byte for the length of what follows. Returns where it is.
fn begin(out: &mut Vec<u8>) -> usize {
    out.push(0);
    out.len() - 1
}

/// Writes the length of what was written since `begin`.
fn end(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start - 1;
    if length < 0x80 {
        out[start] = length as u8;
        return;
    }
    let mut bytes = Vec::with_capacity(10);
    varint(&mut bytes, length as u64);
    out.splice(start..=start, bytes);
}

/// Appends a number.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Serialises numbers as 64 bits, negative ones with their sign.
macro_rules! numbers {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, value: $type) -> Result<(), Error> {
            self.number(value as i64 as u64)
        })*
    };
}

/// Refuses what no message can have.
macro_rules! no_form {
    ($($method:ident($($type:ty),*) -> $result:ty;)*) => {
        $(fn $method(self, $(_: $type),*) -> Result<$result, Error> {
            Err(Error::custom(NO_FORM))
        })*
    };
}

impl<'a> Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeMap = MapWriter<'a>;
    type SerializeStruct = MessageWriter<'a>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    fn is_human_readable(&self) -> bool {
        false
    }

    numbers! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
    }

    no_form! {
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(mut self, value: f64) -> Result<(), Error> {
        if !matches!(self.kind, Kind::Double) {
            return Err(Error::custom("a fraction in a field of another kind"));
        }
        if value.to_bits() != 0 || self.is_item {
            self.tag(1);
            self.out.extend_from_slice(&value.to_le_bytes());
        }
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.serialize_bytes(value.as_bytes())
    }

    fn serialize_bytes(mut self, value: &[u8]) -> Result<(), Error> {
        // Bytes of a message are those of one that was written before.
        if !matches!(self.kind, Kind::Text | Kind::Bytes | Kind::Message(_)) {
            return Err(Error::custom("bytes in a field of another kind"));
        }
        if !value.is_empty() || self.is_item {
            self.tag(2);
            varint(self.out, value.len() as u64);
            self.out.extend_from_slice(value);
        }
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    /// A message with one field, which has the name of the variant.
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut message = self.begin()?;
        message.serialize_field(variant, value)?;
        SerializeStruct::end(message)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Error> {
        Ok(self.list())
    }

    fn serialize_map(self, _: Option<usize>) -> Result<MapWriter<'a>, Error> {
        let Self { out, kind: Kind::Message(entry), number: Some(number), .. } = self else {
            return Err(Error::custom("a map in a field of another kind"));
        };
        Ok(MapWriter { out, entry, number, start: 0 })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<MessageWriter<'a>, Error> {
        self.begin()
    }
}

/// The items of a list, each with the tag of its field.
impl SerializeSeq for Writer<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let Self { kind, number, is_item, .. } = *self;
        value.serialize(Writer { out: self.out, kind, number, is_item })
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

/// The fields of a message.
struct MessageWriter<'a> {
    out: &'a mut Vec<u8>,
    message: &'static MessageTable,
    start: Option<usize>,
}

impl SerializeStruct for MessageWriter<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let field = self.message.fields.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| Error::custom(format_args!("no field {name}")))?;
        value.serialize(Writer::of(self.out, field, false))
    }

    fn end(self) -> Result<(), Error> {
        self.start.into_iter().for_each(|start| end(self.out, start));
        Ok(())
    }
}

/// The entries of a map: a message with key and value for each.
struct MapWriter<'a> {
    out: &'a mut Vec<u8>,
    entry: &'static MessageTable,
    number: u32,
    start: usize,
}

impl SerializeMap for MapWriter<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        varint(self.out, u64::from(self.number << 3 | 2));
        self.start = begin(self.out);
        key.serialize(Writer::of(self.out, &self.entry.fields[0], false))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(Writer::of(self.out, &self.entry.fields[1], false))?;
        end(self.out, self.start);
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

const NO_FORM: &str = "no message has this form";
