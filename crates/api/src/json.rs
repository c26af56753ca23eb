//! The JSON conventions of requests and results: objects only, null means absent, payloads stay the sender's bytes.
//! In: a serde deserializer or serializer. Out: field values, embedded payloads.
//! Pure; knows no method and no HTTP.
//! Which fields a method has is changed in `method/NAME.rs`; how replies look, in `http::reply`.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::ApiError;

/// A `T` that was written as a JSON object. (Derived code alone would take an array of its fields, too.)
pub(crate) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// A field whose JSON null means the same as its absence.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// An optional field that must be an object.
pub(crate) fn object_or_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Object<T>>::deserialize(deserializer)?.map(|object| object.0))
}

/// A list, of which no more than `MAX` + 1 items are kept, so that memory is bounded and the caller can still see that
/// it was too long. Null is an empty list.
pub(crate) fn up_to<'de, const MAX: usize, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list: Option<UpTo<MAX, T>> = Option::deserialize(deserializer)?;
    Ok(list.map_or_else(Vec::new, |list| list.0))
}

/// Any JSON value as the sender wrote it, byte for byte (also `null`); copied once.
pub(crate) fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
    Ok(Bytes::from(text.into_boxed_bytes()))
}

/// A payload that may be left out; JSON null is none.
pub(crate) fn raw_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    raw(deserializer).map(|payload| if payload == "null" { Bytes::new() } else { payload })
}

/// Whether [`in_place`] can embed a payload.
pub(crate) fn is_embeddable(payload: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(payload).is_ok()
}

/// A payload that is embeddable, byte for byte.
pub(crate) fn in_place<S: Serializer>(payload: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    let text: &RawValue = serde_json::from_slice(payload).map_err(S::Error::custom)?;
    text.serialize(serializer)
}

/// The payload out of its two fields: base64 wins where both are set.
///
/// # Errors
/// 107 when `b64data` is not standard base64 with padding.
pub(crate) fn payload(data: Bytes, b64data: &str) -> Result<Bytes, ApiError> {
    if b64data.is_empty() {
        return Ok(data);
    }
    STANDARD.decode(b64data).map(Bytes::from).map_err(|_| ApiError::BAD_REQUEST)
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

struct UpTo<const MAX: usize, T>(Vec<T>);

impl<'de, const MAX: usize, T: Deserialize<'de>> Deserialize<'de> for UpTo<MAX, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(UpToVisitor(PhantomData))
    }
}

struct UpToVisitor<const MAX: usize, T>(PhantomData<T>);

impl<'de, const MAX: usize, T: Deserialize<'de>> Visitor<'de> for UpToVisitor<MAX, T> {
    type Value = UpTo<MAX, T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() <= MAX {
            match list.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(UpTo(items)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(UpTo(items))
    }
}
