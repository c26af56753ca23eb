//! Reads a Protobuf message as serde's data model, by the table of its fields.
//! In: bytes and a table → out: a deserializer. Unknown fields are skipped, of several values the last counts, messages merge.
//! Pure. Never: recursion deeper than `NESTED_MAX`, lists of values in memory.
//! Changed here: the wire format (<https://protobuf.dev/programming-guides/encoding>). What a field means: `method/NAME.rs`.

use std::borrow::Cow;

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use smallvec::SmallVec;

use super::schema::{Field, Kind, MessageTable, Rule};

/// A deserializer of the message with these bytes.
pub(super) fn message<'a>(message: &'static MessageTable, bytes: &'a [u8]) -> Value<'a> {
    Value::One(Kind::Message(message), Wire::Bytes(bytes), 0)
}

/// A value on the wire.
#[derive(Clone, Copy)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    /// A value of a type that no known field has; skipped.
    Other,
}

/// Fields one after another.
#[derive(Clone, Copy)]
pub(super) struct WireReader<'a>(&'a [u8]);

impl<'a> WireReader<'a> {
    /// The number and the value of the next field.
    fn field(&mut self) -> Result<Option<(u32, Wire<'a>)>, Error> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        Ok(Some((number, self.value(number, wire_type, 0)?)))
    }

    fn tag(&mut self) -> Result<(u32, u64), Error> {
        let tag = self.varint()?;
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..=NUMBER_MAX) => Ok((number, tag & 7)),
            _ => Err(Error::custom("a field has an invalid number")),
        }
    }

    fn value(&mut self, number: u32, wire_type: u64, depth: u32) -> Result<Wire<'a>, Error> {
        match wire_type {
            0 => self.varint().map(Wire::Varint),
            1 => {
                let bytes = self.take(8)?.try_into().expect("eight bytes");
                Ok(Wire::Fixed64(u64::from_le_bytes(bytes)))
            }
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| Error::custom(TRUNCATED))?;
                self.take(length).map(Wire::Bytes)
            }
            3 if depth < GROUPS_MAX => loop {
                match self.tag()? {
                    (end, 4) if end == number => return Ok(Wire::Other),
                    (inner, wire_type) => self.value(inner, wire_type, depth + 1)?,
                };
            },
            5 => self.take(4).map(|_| Wire::Other),
            _ => Err(Error::custom(format_args!("field {number} has an invalid wire type"))),
        }
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::custom("a number has more than 64 bits"))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Error::custom(TRUNCATED))?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next value of one field.
    fn next_of(&mut self, field: &Field) -> Result<Option<Wire<'a>>, Error> {
        while let Some((number, wire)) = self.field()? {
            if number == field.number && field.kind.has(wire) {
                return Ok(Some(wire));
            }
        }
        Ok(None)
    }
}

impl Kind {
    /// Whether a value of this kind has the type of `wire`; other values are skipped like unknown fields.
    fn has(self, wire: Wire<'_>) -> bool {
        match self {
            Self::Text | Self::Bytes | Self::Message(_) => matches!(wire, Wire::Bytes(_)),
            Self::Double => matches!(wire, Wire::Fixed64(_)),
            _ => matches!(wire, Wire::Varint(_)),
        }
    }

    /// The value of a map's entry that has none.
    fn absent(self) -> Wire<'static> {
        match self {
            Self::Text | Self::Bytes | Self::Message(_) => Wire::Bytes(&[]),
            Self::Double => Wire::Fixed64(0),
            _ => Wire::Varint(0),
        }
    }
}

/// The fields that a message has: each once, wherever its values are.
struct Fields<'a> {
    found: smallvec::IntoIter<[FoundField<'a>; 8]>,
    value: Option<FoundField<'a>>,
}

/// A field with its last value.
#[derive(Clone, Copy)]
pub(super) struct FoundField<'a> {
    field: &'static Field,
    last: Wire<'a>,
    count: usize,
    /// Messages around it.
    depth: u32,
    /// The message from its first value on.
    from: WireReader<'a>,
}

impl<'a> Fields<'a> {
    fn of(message: &'static MessageTable, bytes: &'a [u8], depth: u32) -> Result<Self, Error> {
        if depth > NESTED_MAX {
            return Err(Error::custom("messages are nested too deeply"));
        }
        let mut found: SmallVec<[FoundField<'a>; 8]> = SmallVec::new();
        let mut reader = WireReader(bytes);
        let mut from = reader;
        while let Some((number, wire)) = reader.field()? {
            let known = message.fields.iter().find(|field| field.number == number);
            if let Some(field) = known.filter(|field| field.kind.has(wire)) {
                match found.iter_mut().find(|earlier| earlier.field.number == number) {
                    Some(earlier) => (earlier.last, earlier.count) = (wire, earlier.count + 1),
                    None => found.push(FoundField { field, last: wire, count: 1, depth, from }),
                }
            }
            from = reader;
        }
        if message.is_choice {
            found.sort_by_key(|found| found.field.number);
            found.truncate(1);
        }
        Ok(Self { found: found.into_iter(), value: None })
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.value = self.found.next();
        let name = self.value.as_ref().map(|value| StrDeserializer::new(value.field.name));
        name.map(|name| seed.deserialize(name)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let field = self.value.take().ok_or(Error::custom("a value without its key"))?;
        seed.deserialize(Value::Field(field))
    }
}

impl FoundField<'_> {
    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self { field, last, count, depth, from } = self;
        match (field.rule, field.kind, last) {
            (Rule::List, ..) => visitor.visit_seq(Values { field, depth, reader: from }),
            (Rule::Map, Kind::Message(entry), _) => {
                visitor.visit_map(Entries { field, entry, depth, reader: from, value: None })
            }
            (_, kind @ Kind::Message(_), Wire::Bytes(last)) => {
                let bytes = merged(field, last, count, from)?;
                kind.visit(Wire::Bytes(&bytes), depth + 1, visitor)
            }
            (_, kind, wire) => kind.visit(wire, depth + 1, visitor),
        }
    }
}

/// An embedded message whose parts stand in several places: their concatenation merges them.
fn merged<'a>(
    field: &Field,
    last: &'a [u8],
    count: usize,
    mut from: WireReader<'a>,
) -> Result<Cow<'a, [u8]>, Error> {
    if count == 1 {
        return Ok(last.into());
    }
    let mut whole = Vec::new();
    while let Some(wire) = from.next_of(field)? {
        if let Wire::Bytes(part) = wire {
            whole.extend_from_slice(part);
        }
    }
    Ok(whole.into())
}

/// The items of a list.
struct Values<'a> {
    field: &'static Field,
    depth: u32,
    reader: WireReader<'a>,
}

impl<'de> SeqAccess<'de> for Values<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let wire = self.reader.next_of(self.field)?;
        let kind = self.field.kind;
        let depth = self.depth + 1;
        wire.map(|wire| seed.deserialize(Value::One(kind, wire, depth))).transpose()
    }
}

/// The entries of a map. A key may come several times; the last one counts.
struct Entries<'a> {
    field: &'static Field,
    entry: &'static MessageTable,
    depth: u32,
    reader: WireReader<'a>,
    value: Option<Value<'a>>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(Wire::Bytes(bytes)) = self.reader.next_of(self.field)? else { return Ok(None) };
        let [key, value] = self.entry.fields else { unreachable!("an entry has two fields") };
        let mut wires = [key.kind.absent(), value.kind.absent()];
        let mut reader = WireReader(bytes);
        while let Some((number, wire)) = reader.field()? {
            for (field, own) in [key, value].into_iter().zip(&mut wires) {
                if field.number == number && field.kind.has(wire) {
                    *own = wire;
                }
            }
        }
        let [key_wire, wire] = wires;
        self.value = Some(Value::One(value.kind, wire, self.depth + 1));
        seed.deserialize(Value::One(key.kind, key_wire, self.depth + 1)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let value = self.value.take().ok_or(Error::custom("a value without its key"))?;
        seed.deserialize(value)
    }
}

/// The input of a deserializer.
pub(super) enum Value<'a> {
    /// All values of a field of a message.
    Field(FoundField<'a>),
    /// A whole message, an item of a list, or a part of an entry, with the number of messages around it.
    One(Kind, Wire<'a>, u32),
}

impl Kind {
    fn visit<'de, V: Visitor<'de>>(
        self,
        wire: Wire<'_>,
        depth: u32,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match (self, wire) {
            (Self::Text, Wire::Bytes(bytes)) => {
                visitor.visit_str(str::from_utf8(bytes).map_err(|_| Error::custom(NOT_UTF8))?)
            }
            (Self::Bytes, Wire::Bytes(bytes)) => visitor.visit_bytes(bytes),
            (Self::Message(message), Wire::Bytes(bytes)) => {
                visitor.visit_map(Fields::of(message, bytes, depth)?)
            }
            (Self::Bool, Wire::Varint(value)) => visitor.visit_bool(value != 0),
            // Longer numbers are cut, as Protobuf defines.
            (Self::Int32, Wire::Varint(value)) => visitor.visit_i32(value as i32),
            (Self::Int64, Wire::Varint(value)) => visitor.visit_i64(value as i64),
            (Self::Uint32, Wire::Varint(value)) => visitor.visit_u32(value as u32),
            (Self::Uint64, Wire::Varint(value)) => visitor.visit_u64(value),
            (Self::Double, Wire::Fixed64(bits)) => visitor.visit_f64(f64::from_bits(bits)),
            _ => Err(Error::custom("a field has another wire type than its kind")),
        }
    }
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Field(found) => found.visit(visitor),
            Self::One(kind, wire, depth) => kind.visit(wire, depth, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier
    }
}

const NUMBER_MAX: u32 = (1 << 29) - 1;
/// Messages within messages; label filters alone are nested without a limit of their own.
const NESTED_MAX: u32 = 64;
/// Nested groups of an unknown field; messages of this schema have none.
const GROUPS_MAX: u32 = 16;
const TRUNCATED: &str = "the message is cut off";
const NOT_UTF8: &str = "a text is not UTF-8";
