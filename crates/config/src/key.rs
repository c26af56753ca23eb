//! One configuration key: name, kind, default, one sentence, and the field it sets.
//! In: text or a JSON value of any source → out: a `Value` inside the key's limits, or what is expected.
//! Uses durations only. Never: files, environment, or the meaning of a particular key.
//! A new kind of value is added here; the rows live in `keys`, precedence in `settings`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fanwire_auth::Secret;
use fanwire_telemetry::duration;
use serde_json::Value as Json;

use super::transforms::Transforms;

#[cfg(test)]
mod tests;

/// One key of the configuration, as every face of it needs it: help, sample, check and documentation.
#[derive(Debug)]
pub struct Key {
    /// The dotted name, `client.ping_interval`; keys of a namespace are relative to it.
    pub name: &'static str,
    pub kind: Kind,
    /// The default in the form the environment would carry it.
    pub default: &'static str,
    /// One sentence.
    pub doc: &'static str,
    pub support: Support,
}

/// Whether Fanwire obeys a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    Works,
    /// Known from Centrifugo and not obeyed yet; the weight says what asking for it means.
    NotYet(Weight),
}

/// Consequence when somebody sets a key that Fanwire does not obey yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A tuning knob: the server behaves the same to its users. Noted.
    Tuning,
    /// A feature that will be missing. Warned about.
    Feature,
    /// Going on without it would be unsafe or wrong. The start is refused.
    Refused,
}

/// The shape of a value and its limits.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Switch,
    /// A whole number, both limits inclusive.
    Integer {
        min: u64,
        max: u64,
    },
    /// A text such as `25s`, both limits inclusive.
    Duration {
        min: Duration,
        max: Duration,
    },
    Text,
    /// A port from 1, as Centrifugo writes it: a number, the same as a text, or an empty text for none.
    PortText,
    /// A text that is never shown.
    Secret,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// A URL path with a leading slash, of characters that mean nothing to a router (RFC 3986 §2.3).
    Path,
    /// A list of texts; space separated in the environment, or JSON.
    List,
    /// A section or map whose inside is not checked here.
    Block,
    /// A list of objects; JSON in the environment.
    Objects,
    /// Texts by name, never shown, with variables in them; JSON in the environment.
    Texts,
    /// A list of rows that say what codes become; JSON in the environment.
    Transforms(Transforms),
}

/// A value that obeys its key's kind and limits.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Switch(bool),
    Integer(u64),
    Duration(Duration),
    Text(String),
    List(Vec<String>),
    /// Blocks and lists of objects, as they were written, and texts by name.
    Tree(Json),
}

/// Why a value does not fit its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// Another type; the text says what would be right.
    Type(String),
    /// The right type, outside the limits; the text says what would be right.
    Range(String),
}

impl Kind {
    /// Reads a value from a file. Switches and numbers may stand in quotes, as with Centrifugo.
    ///
    /// # Errors
    /// `Misfit` with what would be right.
    pub fn read(&self, json: &Json) -> Result<Value, Misfit> {
        match (self, json) {
            (Kind::Switch, Json::Bool(on)) => Ok(Value::Switch(*on)),
            (Kind::Integer { min, max }, Json::Number(number)) => self.integer(number, *min, *max),
            (Kind::Switch | Kind::Integer { .. }, Json::String(text)) => self.read_text(text),
            (Kind::Duration { .. }, Json::String(text)) => self.duration(text),
            (Kind::Text | Kind::Secret, Json::String(text)) => Ok(Value::Text(text.clone())),
            (Kind::Text | Kind::Secret, Json::Number(number)) => {
                Ok(Value::Text(number.to_string()))
            }
            (Kind::Choice(choices), Json::String(text)) => {
                let known = choices.iter().find(|choice| choice.eq_ignore_ascii_case(text));
                known
                    .map(|known| Value::Text((*known).to_owned()))
                    .ok_or_else(|| self.out_of_range())
            }
            (Kind::Path, Json::String(text)) => {
                let right = text.starts_with('/') && text.chars().all(is_path_char);
                right.then(|| Value::Text(text.clone())).ok_or_else(|| self.out_of_range())
            }
            (Kind::PortText, Json::Number(number)) => self.port_text(&number.to_string()),
            (Kind::PortText, Json::String(text)) => self.port_text(text),
            (Kind::List, Json::Array(items)) => self.list(items),
            (Kind::List, Json::String(text)) => self.read_text(text),
            (Kind::Block, Json::Object(_)) => Ok(Value::Tree(json.clone())),
            (Kind::Objects, Json::Array(items)) if items.iter().all(Json::is_object) => {
                Ok(Value::Tree(json.clone()))
            }
            (Kind::Texts, Json::Object(entries)) => self.texts(entries),
            (Kind::Transforms(transforms), json) if transforms.take(json) => {
                match transforms.mistake(json) {
                    Some(expected) => Err(Misfit::Range(expected)),
                    None => Ok(Value::Tree(json.clone())),
                }
            }
            _ => Err(self.wrong_type(json)),
        }
    }

    /// Reads a value from the environment, a flag, or a default.
    ///
    /// # Errors
    /// `Misfit` with what would be right.
    pub fn read_text(&self, text: &str) -> Result<Value, Misfit> {
        let json = match self {
            Kind::Switch => match text {
                "true" | "TRUE" | "True" | "t" | "T" | "1" => Json::Bool(true),
                "false" | "FALSE" | "False" | "f" | "F" | "0" => Json::Bool(false),
                _ => return Err(self.unreadable(text)),
            },
            Kind::Integer { .. } => match text.trim().parse::<serde_json::Number>() {
                Ok(number) => Json::Number(number),
                Err(_) => return Err(self.unreadable(text)),
            },
            Kind::List => match serde_json::from_str(text) {
                Ok(items @ Json::Array(_)) => items,
                _ => text.split_whitespace().map(|item| Json::String(item.into())).collect(),
            },
            Kind::Block | Kind::Objects | Kind::Texts | Kind::Transforms(_) => match (self, text) {
                (Kind::Block | Kind::Texts, "") => Json::Object(serde_json::Map::new()),
                (_, "") => Json::Array(Vec::new()),
                _ => match serde_json::from_str(text) {
                    Ok(json) => json,
                    Err(_) => return Err(Misfit::Type(format!("{self}, as JSON"))),
                },
            },
            _ => Json::String(text.to_owned()),
        };
        self.read(&json)
    }

    /// Whether an empty text in the environment is a value of this kind; for the others it means "not set".
    pub fn takes_empty_text(&self) -> bool {
        matches!(self, Kind::Text | Kind::Secret | Kind::List | Kind::PortText)
            || matches!(self, Kind::Choice(choices) if choices.contains(&""))
    }

    fn integer(&self, number: &serde_json::Number, min: u64, max: u64) -> Result<Value, Misfit> {
        // `100.0` is a whole number, too. Above 2^53 a float is not exact.
        let whole = |float: &f64| float.fract() == 0.0 && (0.0..=EXACT_MAX).contains(float);
        let of_float = number.as_f64().filter(|float| number.is_f64() && whole(float));
        match number.as_u64().or(of_float.map(|float| float as u64)) {
            Some(count) if (min..=max).contains(&count) => Ok(Value::Integer(count)),
            None if number.is_f64() => Err(Misfit::Type(self.to_string())),
            _ => Err(self.out_of_range()),
        }
    }

    fn duration(&self, text: &str) -> Result<Value, Misfit> {
        let Kind::Duration { min, max } = self else { return Err(self.out_of_range()) };
        match duration::parse(text) {
            Ok(length) if (*min..=*max).contains(&length) => Ok(Value::Duration(length)),
            Ok(_) | Err(duration::NotADuration::Negative) => Err(self.out_of_range()),
            Err(duration::NotADuration::Malformed) => Err(self.unreadable(text)),
        }
    }

    fn port_text(&self, text: &str) -> Result<Value, Misfit> {
        let is_right = text.is_empty() || text.parse::<u16>().is_ok_and(|port| port > 0);
        is_right.then(|| Value::Text(text.to_owned())).ok_or_else(|| self.out_of_range())
    }

    fn list(&self, items: &[Json]) -> Result<Value, Misfit> {
        let texts: Option<Vec<String>> = items.iter().map(text).collect();
        texts.map(Value::List).ok_or_else(|| Misfit::Type(self.to_string()))
    }

    fn texts(&self, entries: &serde_json::Map<String, Json>) -> Result<Value, Misfit> {
        let entries: Option<serde_json::Map<String, Json>> =
            entries.iter().map(|(name, item)| Some((name.clone(), text(item)?.into()))).collect();
        let tree = entries.map(|entries| Value::Tree(Json::Object(entries)));
        tree.ok_or_else(|| Misfit::Type(self.to_string()))
    }

    fn out_of_range(&self) -> Misfit {
        Misfit::Range(self.to_string())
    }

    /// The expectation, with a word for the mistakes that everybody makes once.
    fn wrong_type(&self, json: &Json) -> Misfit {
        let hint = match (self, json) {
            (Kind::Duration { .. }, Json::Number(_)) => "; a plain number has no unit",
            (Kind::Text | Kind::Secret | Kind::Choice(_), Json::Bool(_))
            | (Kind::Choice(_), Json::Number(_)) => "; written in quotes",
            _ => "",
        };
        Misfit::Type(format!("{self}{hint}"))
    }

    /// The expectation, with a remark about quotes that were not removed, as with `docker run --env-file`.
    fn unreadable(&self, text: &str) -> Misfit {
        let is_quoted = |quote| text.len() > 1 && text.starts_with(quote) && text.ends_with(quote);
        let hint = if is_quoted('"') || is_quoted('\'') {
            "; the quotes are part of the value"
        } else {
            ""
        };
        Misfit::Type(format!("{self}{hint}"))
    }
}

/// 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A text, or a number that was written without quotes.
fn text(item: &Json) -> Option<String> {
    match item {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn is_path_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~/".contains(c)
}

/// Text of the expected values, as the end of "expected …".
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Switch => f.write_str("true or false"),
            Kind::Integer { min, max: u64::MAX } => write!(f, "a whole number, at least {min}"),
            Kind::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Kind::Duration { min, max } => write!(
                f,
                "a duration such as \"300ms\", \"25s\" or \"1m30s\", from {} to {}",
                duration::format(*min),
                duration::format(*max)
            ),
            Kind::Text | Kind::Secret => f.write_str("a text"),
            Kind::Choice(choices) => {
                let quoted: Vec<String> = choices.iter().map(|one| format!("{one:?}")).collect();
                write!(f, "one of {}", quoted.join(", "))
            }
            Kind::PortText => f.write_str("a port from 1 to 65535, or nothing"),
            Kind::Path => f.write_str("a path of letters, digits and -._~ that begins with /"),
            Kind::List => f.write_str("a list of texts"),
            Kind::Block => f.write_str("a section of keys"),
            Kind::Objects => f.write_str("a list of sections"),
            Kind::Texts => f.write_str("texts by name"),
            Kind::Transforms(transforms) => transforms.fmt(f),
        }
    }
}

/// A key that Fanwire obeys, with the place its value goes to.
pub(crate) struct Row<T: 'static> {
    pub(crate) key: Key,
    /// The field, as the row names it; "" for a row whose target has none.
    #[cfg(test)]
    pub(crate) path: &'static str,
    pub(crate) set: fn(&mut T, Value),
}

/// How a value becomes a field. A row whose kind does not fit its field is a bug of the table.
pub(crate) trait FromValue {
    fn from_value(value: Value) -> Self;
}

macro_rules! from_value {
    ($($field:ty: $variant:ident),*) => {$(
        impl FromValue for $field {
            fn from_value(value: Value) -> Self {
                match value {
                    Value::$variant(inner) => inner,
                    other => unreachable!("the row's kind gave {other:?}"),
                }
            }
        }
    )*};
}

impl FromValue for Secret {
    fn from_value(value: Value) -> Self {
        String::from_value(value).into()
    }
}

impl FromValue for Arc<str> {
    fn from_value(value: Value) -> Self {
        String::from_value(value).into()
    }
}

impl FromValue for BTreeMap<String, String> {
    fn from_value(value: Value) -> Self {
        serde_json::from_value(Json::from_value(value)).expect("the row's kind made texts of it")
    }
}

macro_rules! from_value_integer {
    ($($field:ty),*) => {$(
        impl FromValue for $field {
            fn from_value(value: Value) -> Self {
                match value {
                    Value::Integer(count) => {
                        Self::try_from(count).expect("the row's limits lie inside its field's")
                    }
                    other => unreachable!("the row's kind gave {other:?}"),
                }
            }
        }
    )*};
}

from_value!(bool: Switch, u64: Integer, Duration: Duration, String: Text, Vec<String>: List, Json: Tree);
from_value_integer!(u8, u16, u32, usize);

/// A table of keys that work: `"name", KIND, "default" => [field.path], "One sentence.";`. With `[field.path = function]` the
/// function makes the field of the value; a closure in parentheses is for a target that has no fields.
macro_rules! rows {
    ($table:ident: $target:ty; $($name:literal, $kind:expr, $default:literal => $place:tt, $doc:literal;)*) => {
        pub(crate) static $table: &[$crate::key::Row<$target>] = &[$(
            $crate::key::Row {
                key: $crate::key::Key {
                    name: $name,
                    kind: $kind,
                    default: $default,
                    doc: $doc,
                    support: $crate::key::Support::Works,
                },
                #[cfg(test)]
                path: $crate::key::field_path!($place),
                set: $crate::key::place!($place),
            },
        )*];
    };
}

macro_rules! place {
    ([$($field:ident).+]) => {
        |target, value| target.$($field).+ = $crate::key::FromValue::from_value(value)
    };
    ([$($field:ident).+ = $function:path]) => {
        |target, value| target.$($field).+ = $function(value)
    };
    (($set:expr)) => { $set };
}

#[cfg(test)]
macro_rules! field_path {
    ([$($field:ident).+]) => { stringify!($($field).+) };
    ([$($field:ident).+ = $function:path]) => { stringify!($($field).+) };
    (($set:expr)) => { "" };
}

/// A table of Centrifugo's keys that do not work yet: `"name", KIND, "default", Weight, "One sentence.";`.
macro_rules! not_yet {
    ($table:ident; $($name:literal, $kind:expr, $default:literal, $weight:ident, $doc:literal;)*) => {
        pub(crate) static $table: &[$crate::key::Key] = &[$(
            $crate::key::Key {
                name: $name,
                kind: $kind,
                default: $default,
                doc: $doc,
                support: $crate::key::Support::NotYet($crate::key::Weight::$weight),
            },
        )*];
    };
}

#[cfg(test)]
pub(crate) use field_path;
pub(crate) use {not_yet, place, rows};
