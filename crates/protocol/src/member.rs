//! One member of a JSON object, read without the others.
//! In: a payload, the name of a member → out: its text.
//! Uses serde_json. Never: builds the other values.
//! Changed here: what counts as a text. Who needs it decides what its lack means.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::json::without_halves;

/// The text of a member of a JSON object; `None` when the payload is no object, or the member is missing or no text. Of two members
/// with this name the last one counts, as in JavaScript.
pub fn text_member(json: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(json).ok()?;
    let read = |text: &str| {
        let mut input = serde_json::Deserializer::from_str(text);
        let member = TextMember(name).deserialize(&mut input)?;
        input.end().map(|()| member)
    };
    read(text)
        .or_else(|error| without_halves(text).map_or(Err(error), |whole| read(&whole)))
        .ok()?
}

/// The name of the member that is read.
struct TextMember<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for TextMember<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TextMember<'_> {
    type Value = Option<String>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut value = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == self.0 {
                value = map.next_value::<Text>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(value)
    }
}

/// A text; `None` for any other value.
#[derive(serde::Deserialize)]
#[serde(from = "TextOrOther")]
struct Text(Option<String>);

#[derive(serde::Deserialize)]
#[serde(untagged)]
enum TextOrOther {
    Text(String),
    Other(IgnoredAny),
}

impl From<TextOrOther> for Text {
    fn from(value: TextOrOther) -> Self {
        match value {
            TextOrOther::Text(text) => Self(Some(text)),
            TextOrOther::Other(_) => Self(None),
        }
    }
}

#[cfg(test)]
mod tests;
