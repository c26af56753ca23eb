//! The JSON rules of fields (client protocol §3): what serde's derive does not know by itself.
//! In: a JSON text → a message; a message → a JSON text. Attribute functions for each kind of field in `generated`.
//! Uses serde_json with raw values; never knows a message by name.
//! Rules for field kinds change here; which field is of which kind is said in `message`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::{DecodeError, NotJson};
use crate::escape::HtmlSafe;
use crate::scan::newlines_in_json;

/// Reads one message from a whole JSON text.
pub(crate) fn read<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, DecodeError> {
    let mut input = serde_json::Deserializer::from_slice(text);
    let value = T::deserialize(ObjectOnly(&mut input))?;
    input.end()?;
    Ok(value)
}

/// Appends a message, or nothing when a payload in it is not JSON.
pub(crate) fn write(message: &impl Serialize, out: &mut Vec<u8>) -> Result<(), NotJson> {
    let start = out.len();
    let mut output = serde_json::Serializer::with_formatter(&mut *out, HtmlSafe);
    message.serialize(&mut output).map_err(|_| {
        out.truncate(start);
        NotJson
    })
}

/// Default values are left out, unless a field is marked **always** (client protocol §4).
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A bool, number or string; `null` is the default.
pub(crate) fn scalar<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(input).map(Option::unwrap_or_default)
}

/// A message; `null` is none.
pub(crate) fn message<'de, D, T>(input: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Object<T>>::deserialize(input)?.map(|object| object.0))
}

/// A list; `null` is empty, and an element that is `null` is the default.
pub(crate) fn list<'de, D, T>(input: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    let elements = Option::<Vec<Option<Object<T>>>>::deserialize(input)?.unwrap_or_default();
    Ok(elements.into_iter().map(or_default).collect())
}

/// A map; `null` is empty, and a value that is `null` is the default.
pub(crate) fn map<'de, D, T>(input: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    let entries = Option::<BTreeMap<String, Option<Object<T>>>>::deserialize(input)?;
    let entries = entries.unwrap_or_default().into_iter();
    Ok(entries.map(|(key, value)| (key, or_default(value))).collect())
}

/// A payload: raw JSON in place.
pub(crate) mod raw {
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Bytes, D::Error> {
        let text = Option::<&RawValue>::deserialize(input)?.map_or("", RawValue::get);
        Ok(Bytes::copy_from_slice(text.as_bytes()))
    }

    pub(crate) fn serialize<S: Serializer>(data: &Bytes, output: S) -> Result<S::Ok, S::Error> {
        let newlines = newlines_in_json(data).ok_or_else(|| S::Error::custom(NotJson))?;
        let mut text = Cow::Borrowed(&data[..]);
        if newlines > 0 {
            text.to_mut().retain(|byte| *byte != b'\n');
        }
        let raw: &RawValue = serde_json::from_slice(&text).expect("known to be JSON");
        raw.serialize(output)
    }
}

/// Bytes that JSON holds as a string.
pub(crate) mod text_bytes {
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Bytes, D::Error> {
        scalar::<_, String>(input).map(Bytes::from)
    }

    pub(crate) fn serialize<S: Serializer>(data: &Bytes, output: S) -> Result<S::Ok, S::Error> {
        std::str::from_utf8(data).map_err(S::Error::custom)?.serialize(output)
    }
}

/// A value whose messages are read from objects only. serde's derive also takes an array of a
/// message's fields, and we do not: `[]` would pass for a pong.
struct Object<T>(T);

fn or_default<T: Default>(value: Option<Object<T>>) -> T {
    value.map(|object| object.0).unwrap_or_default()
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        T::deserialize(ObjectOnly(input)).map(Self)
    }
}

struct ObjectOnly<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
