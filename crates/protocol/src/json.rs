//! The JSON rules of fields (client protocol §3) that serde's derive does not have.
//! In: a JSON text → a message; a message → a JSON text. Attribute functions for each kind of field in `message`.
//! Uses serde_json to read and `writer` to write; never a message by name.
//! Rules for kinds of fields change here; `build.rs` assigns them to the fields.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::{DecodeError, NotJson};
use writer::{Exact, Length, Writer};

pub(crate) mod writer;

/// Reads one message from a whole JSON text, which is UTF-8 (RFC 8259 §8.1), in what is skipped, too.
///
/// Half a surrogate pair in a string is U+FFFD, as in Go: what an SDK was given cut in the middle of a character makes a command
/// fail, and not the connection.
pub(crate) fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, DecodeError> {
    let text = std::str::from_utf8(text)
        .map_err(|error| DecodeError::JsonSyntax { column: error.valid_up_to() + 1 })?;
    // serde_json refuses such halves everywhere but in payloads; few texts have one.
    read_whole(text).or_else(|error| match without_halves(text) {
        Some(whole) => Ok(read_whole(&whole)?),
        None => Err(error.into()),
    })
}

fn read_whole<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let mut input = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(ObjectOnly(&mut input))?;
    input.end()?;
    Ok(value)
}

/// A JSON text with `\ufffd` for each escape of half a surrogate pair; `None` when it has none. A text that is no JSON may
/// become another one that is none.
pub fn without_halves(text: &str) -> Option<String> {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.push_str(r"\ufffd");
                rest = &escape[6..];
                continue;
            }
            // The character behind a backslash may be another one.
            _ => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        whole.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    whole.push_str(rest);
    (whole != text).then_some(whole)
}

/// The number of an escape such as `\ud83d` at the start of a text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(r"\u")?.get(..4)?;
    // It would take a sign.
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(())?;
    u16::from_str_radix(digits, 16).ok()
}

/// Appends a message, or nothing when a payload in it is not JSON.
pub(crate) fn write(message: &impl Serialize, out: &mut Vec<u8>) -> Result<(), NotJson> {
    let start = out.len();
    message.serialize(Writer(&mut *out)).inspect_err(|_| out.truncate(start))
}

/// A message in one allocation of exactly its size; `None` when a payload in it is not JSON.
pub(crate) fn write_exact(message: &impl Serialize) -> Option<Vec<u8>> {
    let mut length = Length::default();
    message.serialize(Writer(&mut length)).ok()?;
    let mut exact = Exact::new(&length);
    message.serialize(Writer(&mut exact)).expect("written once already");
    debug_assert_eq!(exact.out.len(), length.bytes);
    Some(exact.out)
}

/// Whether a message has a JSON form.
pub(crate) fn is_writable(message: &impl Serialize) -> bool {
    message.serialize(Writer(&mut Length::default())).is_ok()
}

/// Default values are left out, unless a field is marked **always** (client protocol §4).
pub(crate) fn is_default(value: &impl Blank) -> bool {
    value.is_blank()
}

/// A kind of field that has a default value. The check is quick, because each field is checked twice per message.
pub(crate) trait Blank {
    fn is_blank(&self) -> bool;
}

macro_rules! blank {
    ($($kind:ty, $is_blank:expr;)*) => {
        $(impl Blank for $kind {
            #[inline]
            fn is_blank(&self) -> bool {
                $is_blank(self)
            }
        })*
    };
}

blank! {
    bool, |value: &bool| !value;
    u32, |value: &u32| *value == 0;
    i32, |value: &i32| *value == 0;
    u64, |value: &u64| *value == 0;
    i64, |value: &i64| *value == 0;
    String, String::is_empty;
    Bytes, Bytes::is_empty;
}

impl<T> Blank for Option<T> {
    #[inline]
    fn is_blank(&self) -> bool {
        self.is_none()
    }
}

impl<T> Blank for Vec<T> {
    #[inline]
    fn is_blank(&self) -> bool {
        self.is_empty()
    }
}

impl<K, V> Blank for BTreeMap<K, V> {
    #[inline]
    fn is_blank(&self) -> bool {
        self.is_empty()
    }
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
    let entries_or_null = Option::<BTreeMap<String, Option<Object<T>>>>::deserialize(input)?;
    let entries = entries_or_null.unwrap_or_default().into_iter();
    Ok(entries.map(|(key, value)| (key, or_default(value))).collect())
}

/// A payload: raw JSON in place. A `null` is the payload `null`, which clients may publish as anything else; only what is not
/// there is empty.
pub(crate) mod raw {
    use super::*;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Bytes, D::Error> {
        let text = <&RawValue>::deserialize(input)?.get();
        Ok(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// Serializes for [`Writer`], which checks it; other serializers of serde have no raw text, and would take it for a list of numbers.
    pub(crate) fn serialize<S: Serializer>(data: &Bytes, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_bytes(data)
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
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, OnlyMap(visitor))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct enum identifier ignored_any
    }
}

/// The visitor of a message, which takes no list.
struct OnlyMap<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for OnlyMap<V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(out)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(entries)
    }
}

#[cfg(test)]
mod tests;
