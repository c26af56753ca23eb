//! `proto/client.proto` as data: a reader for the few lines of the language that the file uses.
//! In: the file. Out: messages with their fields: name, number, kind, rule of presence in JSON.
//! Uses nothing; panics on a line it does not know.
//! The fields that JSON always has are listed here once more, on purpose (client protocol §4, **always**).

use std::collections::BTreeMap;

/// Fields by message name.
pub(crate) type Schema = BTreeMap<String, Vec<Field>>;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    /// Written in JSON even with its default value.
    pub(crate) is_always: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Kind {
    Bool,
    Uint32,
    Uint64,
    Int32,
    Int64,
    Sint64,
    Text,
    /// Raw JSON in JSON.
    Payload,
    /// Bytes that JSON holds as a string.
    TextBytes,
    Message(String),
    List(Box<Kind>),
    Map(Box<Kind>),
}

const ALWAYS: [&str; 8] = [
    "ClientInfo.user",
    "ClientInfo.client",
    "PresenceResult.presence",
    "PresenceStatsResult.num_clients",
    "PresenceStatsResult.num_users",
    "HistoryResult.publications",
    "HistoryResult.epoch",
    "HistoryResult.offset",
];

pub(crate) fn schema() -> Schema {
    let mut schema = Schema::new();
    let mut open = String::new();
    for line in include_str!("../../proto/client.proto").lines().map(str::trim) {
        let is_other =
            ["//", "syntax", "package", "reserved", "}"].iter().any(|s| line.starts_with(s));
        if line.is_empty() || is_other {
            continue;
        }
        if let Some(message) = line.strip_prefix("message ") {
            open = message.trim_end_matches(['{', '}', ' ']).to_owned();
            schema.insert(open.clone(), Vec::new());
        } else {
            let field = field(&open, line);
            schema.get_mut(&open).expect("an open message").push(field);
        }
    }
    schema
}

fn field(message: &str, line: &str) -> Field {
    let (left, number) = line.trim_end_matches(';').split_once(" = ").expect("a field");
    let (kind_name, name) = left.rsplit_once(' ').expect("a type and a name");
    let path = format!("{message}.{name}");
    let mut kind = kind(kind_name);
    if path == "EmulationRequest.data" {
        kind = Kind::TextBytes;
    }
    let number = number.parse().expect("a number");
    Field { name: name.to_owned(), number, kind, is_always: ALWAYS.contains(&&*path) }
}

fn kind(name: &str) -> Kind {
    if let Some(value) = name.strip_prefix("map<string, ") {
        return Kind::Map(Box::new(kind(value.trim_end_matches('>'))));
    }
    if let Some(element) = name.strip_prefix("repeated ") {
        return Kind::List(Box::new(kind(element)));
    }
    match name {
        "bool" => Kind::Bool,
        "uint32" => Kind::Uint32,
        "uint64" => Kind::Uint64,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "sint64" => Kind::Sint64,
        "string" => Kind::Text,
        "bytes" => Kind::Payload,
        _ => Kind::Message(name.to_owned()),
    }
}
