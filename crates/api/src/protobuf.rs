//! The Protobuf form of requests and results: the same serde types as in JSON, read and written by tables of numbers.
//! In: bytes of a message → a command; an outcome → bytes of a message.
//! Pure; never gRPC, never a struct per message.
//! A field gets its number in `proto/api.proto`; its type and meaning live in `method/NAME.rs`.

mod decode;
mod encode;
pub(crate) mod schema;
#[cfg(test)]
pub(crate) mod tests;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use encode::varint;

use bytes::Bytes;
use serde::de::value::Error;
use serde::de::{DeserializeSeed as _, Error as _};
use serde::{Deserialize as _, Serialize};

use crate::envelope::Envelope;
use crate::json::in_place;
use crate::method::batch::{Item, Reply};
use crate::refusals::Named;
use crate::{ApiError, Command, Outcome};
use schema::Rpc;

/// Finds a method by its name in the service `CentrifugoApi`, such as `Publish`.
pub(crate) fn rpc(name: &str) -> Option<&'static Rpc> {
    schema::RPCS.iter().find(|rpc| rpc.name == name)
}

/// Decodes the request message of a method.
///
/// # Errors
/// A description of the malformed bytes.
pub(crate) fn request(rpc: &Rpc, bytes: &[u8]) -> Result<Command, Error> {
    let mut command = rpc
        .method
        .deserialize(decode::message(rpc.request, bytes))?
        .ok_or_else(|| Error::custom("no message"))?;
    if let Command::Batch(batch) = &mut command {
        batch.commands.get_or_insert_default(); // an empty list is nowhere in the bytes
    }
    Ok(command)
}

/// Encodes the response message of a method.
pub(crate) fn response(rpc: &Rpc, outcome: &Result<Outcome, ApiError>) -> Vec<u8> {
    let encoded = match outcome {
        Ok(Outcome::Batch(reply)) => encode::message(reply, rpc.response),
        outcome => encode::message(&Envelope::of(outcome), rpc.response),
    };
    encoded.expect(COMPLETE)
}

/// The channel and the user that a request message names.
pub(crate) fn named(rpc: &Rpc, bytes: &[u8]) -> Named {
    Named::deserialize(decode::message(rpc.request, bytes)).unwrap_or_default()
}

/// Encodes the `google.rpc.Status` of an application error, whose details are an `Error`.
pub(crate) fn status(code: u8, message: &str, error: ApiError) -> Vec<u8> {
    #[derive(Serialize)]
    struct Status<'a> {
        code: u8,
        message: &'a str,
        details: &'a [Any],
    }
    #[derive(Serialize)]
    struct Any {
        type_url: &'static str,
        #[serde(serialize_with = "in_place")]
        value: Bytes,
    }
    let value = encode::message(&error, &schema::Error).expect(COMPLETE).into();
    let details = &[Any { type_url: ERROR_URL, value }];
    encode::message(&Status { code, message, details }, &schema::Status).expect(COMPLETE)
}

/// Decodes a command of a stream, which is one of a batch.
///
/// # Errors
/// A description of the malformed bytes.
pub(crate) fn command(bytes: &[u8]) -> Result<Result<Command, ApiError>, Error> {
    Item::deserialize(decode::message(&schema::Command, bytes)).map(|item| item.0)
}

/// Encodes the reply to a command of a batch or a stream.
pub(crate) fn reply(reply: &Reply) -> Vec<u8> {
    encode::message(reply, &schema::Reply).expect(COMPLETE)
}

/// Appends the reply to a command of a stream, as a message of gRPC.
pub(crate) fn framed_reply(to_command: &Reply, out: &mut Vec<u8>) {
    frame(&reply(to_command), out);
}

/// Appends a message behind the prefix that gRPC gives it: not compressed, and its length.
pub(crate) fn frame(message: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(&(message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

const ERROR_URL: &str = "type.googleapis.com/centrifugal.centrifugo.api.Error";

const COMPLETE: &str = "every field of a result has a number: a test compares them";
