//! Names of JSON fields in any ASCII case, as Go and .NET read them (server API §2, docs/proxies.md).
//! In: a deserializer of JSON → out: one that gives each field its own name, however the text spells it.
//! Uses serde. Never: commands of clients, which are read exactly; keys of maps, payloads, enums.
//! Changed here: which spellings are the same name. Two of them in one object are two values of one field: an error.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// A value that is read with names in any case, and whose messages are objects alone; or a deserializer that reads so.
pub struct AnyCase<T>(pub T);

type Names = &'static [&'static str];

impl<'de, T: Deserialize<'de>> Deserialize<'de> for AnyCase<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        T::deserialize(AnyCase(input)).map(Self)
    }
}

/// Reads what is within a value in the same way.
macro_rules! within {
    ($($method:ident($($argument:ident: $type:ty),*) = $call:ident, $names:expr;)*) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($argument: $type,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            self.0.$call(Within { visitor, names: $names })
        })*
    };
}

/// Reads a value that has no fields.
macro_rules! as_it_is {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for AnyCase<D> {
    type Error = D::Error;

    within! {
        deserialize_struct(_name: &'static str, names: Names) = deserialize_map, Some(names);
        deserialize_map() = deserialize_map, None;
        deserialize_seq() = deserialize_seq, None;
        deserialize_option() = deserialize_option, None;
    }

    /// serde_json knows raw text by the name.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Within { visitor, names: None })
    }

    as_it_is! {
        deserialize_any deserialize_bool deserialize_i32 deserialize_i64 deserialize_u32 deserialize_u64
        deserialize_f64 deserialize_str deserialize_string deserialize_ignored_any
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
    }
}

/// The visitor of a value, or of a key, with the names of the fields of an object; none for other values.
struct Within<V> {
    visitor: V,
    names: Option<Names>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Within<V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_some() {
            out.write_str("a JSON object")
        } else {
            self.visitor.expecting(out)
        }
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(AnyCase(input))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, input: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(AnyCase(input))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<V::Value, E> {
        self.visitor.visit_str(name_of(key, self.names.unwrap_or_default()))
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<V::Value, E> {
        self.visitor.visit_borrowed_str(name_of(key, self.names.unwrap_or_default()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(Items(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Entries { entries, names: self.names })
    }
}

struct Items<A>(A);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(AnyCase(seed))
    }
}

/// The entries of a map, or of an object whose fields have these names.
struct Entries<A> {
    entries: A,
    names: Option<Names>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        match self.names {
            Some(names) => self.entries.next_key_seed(SpelledName { of: seed, names }),
            None => self.entries.next_key_seed(seed),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.entries.next_value_seed(AnyCase(seed))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for AnyCase<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(AnyCase(input))
    }
}

/// The seed or the deserializer of a key.
struct SpelledName<T> {
    of: T,
    names: Names,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for SpelledName<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<S::Value, D::Error> {
        self.of.deserialize(SpelledName { of: input, names: self.names })
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for SpelledName<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.of.deserialize_str(Within { visitor, names: Some(self.names) })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The name that a key spells: exactly if there is one, else in another case; the key itself if it is no name.
fn name_of(key: &str, names: Names) -> &str {
    if names.contains(&key) {
        return key;
    }
    names.iter().find(|name| name.eq_ignore_ascii_case(key)).unwrap_or(&key)
}

#[cfg(test)]
mod tests;
