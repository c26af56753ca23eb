//! The JSON conventions of requests and results: null means absent, payloads are passed on as they are.
//! In: a serde deserializer or serializer. Out: field values, embedded payloads.
//! Pure; never methods or HTTP.
//! The fields of a method are changed in `method/NAME.rs`; the form of replies in `http::reply`.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::ApiError;

/// A field for which JSON null means absent.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A list, of which at most `MAX` + 1 items are stored: memory is bounded, and the caller can see that it is too long. Null
/// is an empty list.
pub(crate) fn up_to<'de, const MAX: usize, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list: Option<UpTo<MAX, T>> = Option::deserialize(deserializer)?;
    Ok(list.map_or_else(Vec::new, |list| list.0))
}

/// Any JSON value byte for byte (also `null`), or any bytes where the encoding has them; copied once.
pub(crate) fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    if !deserializer.is_human_readable() {
        return deserializer.deserialize_bytes(PayloadVisitor);
    }
    let text: Box<str> = Box::<RawValue>::deserialize(deserializer)?.into();
    Ok(Bytes::from(text.into_boxed_bytes()))
}

/// An optional payload; JSON null means absent.
pub(crate) fn raw_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let is_text = deserializer.is_human_readable();
    let payload = raw(deserializer)?;
    Ok(if is_text && payload == "null" { Bytes::new() } else { payload })
}

/// Whether a number is left out of a result.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Whether [`in_place`] can embed a payload.
pub(crate) fn is_embeddable(payload: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(payload).is_ok()
}

/// Writes an embeddable payload without its raw line ends, which JSON has between tokens only: an answer is one line. Encodings
/// with bytes get the payload as it is.
pub(crate) fn in_place<S: Serializer>(payload: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    if !serializer.is_human_readable() {
        return serializer.serialize_bytes(payload);
    }
    let is_line_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let line: Vec<u8>;
    let mut text = &payload[..];
    if text.iter().any(is_line_end) {
        line = text.iter().copied().filter(|byte| !is_line_end(byte)).collect();
        text = &line;
    }
    let text: &RawValue = serde_json::from_slice(text).map_err(S::Error::custom)?;
    text.serialize(serializer)
}

/// The payload from its two fields: base64 is used when both are set.
///
/// # Errors
/// 107 when `b64data` is not standard base64 with padding.
pub(crate) fn payload(data: Bytes, b64data: &str) -> Result<Bytes, ApiError> {
    if b64data.is_empty() {
        return Ok(data);
    }
    STANDARD.decode(b64data).map(Bytes::from).map_err(|_| ApiError::BAD_REQUEST.because(NOT_BASE64))
}

const NOT_BASE64: &str = "b64data is not standard base64 with padding";

struct PayloadVisitor;

impl Visitor<'_> for PayloadVisitor {
    type Value = Bytes;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("bytes")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes::copy_from_slice(bytes))
    }
}

/// The list of [`up_to`].
pub(crate) struct UpTo<const MAX: usize, T>(pub Vec<T>);

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

/// Pattern of standard base64 with padding, as accepted by [`payload`]: unused bits of the last character are 0.
pub(crate) const BASE64: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// Pattern of a client id or an empty text.
pub(crate) const CLIENT_ID: &str = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$";

/// Pattern of a delivery class or an empty text.
pub(crate) const DELIVERY: &str = "^(reliable|latest)?$";
