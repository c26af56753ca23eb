//! Claim `marshal`: time and allocations of one publication as the bytes of a push.
//! In: a time for each row → out: a table of ours, serde_json and prost.
//! Uses `protocol` for ours; the others write the same message from structs of their own.
//! Changed here: which messages are written, and by what.

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use fanwire_protocol::{Encoding, Publication, encode_publication};
use prost::Message;
use serde::Serialize;
use serde_json::value::RawValue;

use super::page::{Table, figure};
use super::timing::{allocations, nanoseconds};
use crate::fanout::made_up_payloads;

#[derive(Serialize)]
struct JsonReply<'a> {
    push: JsonPush<'a>,
}

#[derive(Serialize)]
struct JsonPush<'a> {
    channel: &'a str,
    r#pub: JsonPublication<'a>,
}

#[derive(Serialize)]
struct JsonPublication<'a> {
    data: &'a RawValue,
    offset: u64,
}

/// The fields that a publication needs, with the numbers of the client protocol.
#[derive(Clone, PartialEq, Message)]
struct ProstReply {
    #[prost(message, optional, tag = "4")]
    push: Option<ProstPush>,
}

#[derive(Clone, PartialEq, Message)]
struct ProstPush {
    #[prost(string, tag = "2")]
    channel: String,
    #[prost(message, optional, tag = "4")]
    r#pub: Option<ProstPublication>,
}

#[derive(Clone, PartialEq, Message)]
struct ProstPublication {
    #[prost(bytes = "bytes", tag = "4")]
    data: Bytes,
    #[prost(uint64, tag = "6")]
    offset: u64,
}

/// A library that writes the same message from a struct of its own.
struct Library<'a> {
    name: &'static str,
    encoding: Encoding,
    write: &'a dyn Fn() -> Vec<u8>,
}

/// # Errors
/// The two ways to write a message differ.
pub(super) fn table(patience: Duration) -> Result<Table> {
    let heads =
        ["data", "encoding", "ours ns", "allocations", "library ns", "allocations", "library"];
    let mut table = Table::new(&heads, NOTE);
    for bytes in [100, 1_000, 10_000] {
        let data = made_up_payloads(bytes)[0].clone();
        let publication =
            Publication { data: data.clone().into(), offset: OFFSET, ..Publication::default() };
        let raw = RawValue::from_string(data.clone())?;
        let json = JsonReply {
            push: JsonPush {
                channel: CHANNEL,
                r#pub: JsonPublication { data: &raw, offset: OFFSET },
            },
        };
        let prost = ProstReply {
            push: Some(ProstPush {
                channel: CHANNEL.to_owned(),
                r#pub: Some(ProstPublication { data: data.into(), offset: OFFSET }),
            }),
        };
        let by_serde = || serde_json::to_vec(&json).expect("it has no maps");
        let by_prost = || prost.encode_length_delimited_to_vec();
        let ours = |encoding| encode_publication(encoding, CHANNEL, &publication);
        assert_eq!(ours(Encoding::Json).as_deref(), Some(&*by_serde()), "the same bytes");
        assert_eq!(ours(Encoding::Protobuf).as_deref(), Some(&*by_prost()), "the same bytes");
        let libraries = [
            Library { name: "serde_json", encoding: Encoding::Json, write: &by_serde },
            Library { name: "prost", encoding: Encoding::Protobuf, write: &by_prost },
        ];
        for Library { name, encoding, write } in libraries {
            let our_step = || {
                black_box(ours(encoding));
            };
            let library_step = || {
                black_box(write());
            };
            table.row(vec![
                format!("{bytes} B"),
                format!("{encoding:?}"),
                figure(nanoseconds(patience, our_step)),
                allocations(our_step).to_string(),
                figure(nanoseconds(patience, library_step)),
                allocations(library_step).to_string(),
                name.to_owned(),
            ]);
        }
    }
    Ok(table)
}

const CHANNEL: &str = "chat:room-17";
const OFFSET: u64 = 4_711;
const NOTE: &str = "One push of a publication, the same bytes by both. Ours also checks the payload: in JSON it must be \
JSON, without raw line ends, because it goes out as it came. A broadcast does this once for all receivers of an encoding.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_and_the_libraries_write_the_same_bytes() {
        let table = table(Duration::ZERO).expect("it is in memory").to_string();
        assert_eq!(table.matches("serde_json").count(), 3, "{table}");
    }
}
