//! The messages of the server API as tables: names, numbers and kinds of their fields, and the methods.
//! In: `proto/*.proto`, read by `build.rs`. Out: static tables, and the descriptors for gRPC reflection.
//! Data only; nothing is read at the start.
//! Changed here: what a table can say. Its rows are generated.

use crate::Method;

/// A message.
pub(crate) struct MessageTable {
    /// Only the field with the lowest number counts.
    pub(crate) is_choice: bool,
    pub(crate) fields: &'static [Field],
}

pub(crate) struct Field {
    /// The name in JSON.
    pub(crate) name: &'static str,
    pub(crate) number: u32,
    pub(crate) rule: Rule,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    One,
    List,
    /// The kind is the message of an entry, with `key` and `value`.
    Map,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    Bytes,
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Double,
    Message(&'static MessageTable),
}

/// A method of the service `CentrifugoApi`.
pub(crate) struct Rpc {
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    pub(crate) request: &'static MessageTable,
    pub(crate) response: &'static MessageTable,
}

#[allow(non_upper_case_globals)] // the names of the messages
mod generated {
    use super::{Field, Kind, MessageTable, Method, Rpc, Rule};

    include!(concat!(env!("OUT_DIR"), "/schema.rs"));
}

pub(crate) use generated::*;

/// `google.rpc.Status`, the details of a call's status.
#[allow(non_upper_case_globals)]
pub(crate) static Status: MessageTable = MessageTable {
    is_choice: false,
    fields: &[
        Field { name: "code", number: 1, rule: Rule::One, kind: Kind::Int32 },
        Field { name: "message", number: 2, rule: Rule::One, kind: Kind::Text },
        Field { name: "details", number: 3, rule: Rule::List, kind: Kind::Message(&Any) },
    ],
};

/// `google.protobuf.Any`.
#[allow(non_upper_case_globals)]
static Any: MessageTable = MessageTable {
    is_choice: false,
    fields: &[
        Field { name: "type_url", number: 1, rule: Rule::One, kind: Kind::Text },
        Field { name: "value", number: 2, rule: Rule::One, kind: Kind::Bytes },
    ],
};
