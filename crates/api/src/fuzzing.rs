//! Properties of every request body: called by a fuzz target, and as a property test by `tests/it/any_bytes.rs`.
//! In: bytes from a fuzzer. Out: nothing, or a panic that names the broken property.
//! Uses the decoders of requests; never a connection, never part of the server.
//! A new transport gets its property here; the targets that call them live in the fuzz folder.

use fanwire_node::protocol::{AnyCase, without_halves};
use serde::de::DeserializeSeed as _;
use serde_json::value::RawValue;

use crate::protobuf::{self, schema};
use crate::stream::{StreamCommand, decode_text};
use crate::{ApiError, BatchRequest, Command, Method, openapi};

/// Asserts that each method decodes a body in the same way alone, inside a batch and in a line of a stream. A body that starts with `/` is used as
/// a path prefix instead: the API document must be JSON for every prefix.
pub fn body(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some(prefix) = text.strip_prefix('/') {
        let document = openapi(prefix);
        assert!(serde_json::from_str::<&RawValue>(&document).is_ok(), "not JSON");
    }
    if serde_json::from_str::<&RawValue>(text).is_err() {
        for method in Method::ALL {
            assert_eq!(
                decoded(method, text),
                None,
                "{} accepts a body that is not JSON",
                method.name()
            );
        }
        return;
    }
    for method in Method::ALL.into_iter().filter(|method| *method != Method::Batch) {
        let alone = decoded(method, text);
        let batch = format!(r#"{{"commands":[{{"{}":{text}}}]}}"#, method.name());
        let expect = match (alone, text.trim_ascii()) {
            (_, "null") => Some(Err(ApiError::NOT_FOUND)),
            (alone, _) => alone.map(Ok),
        };
        let in_batch = match decoded(Method::Batch, &batch) {
            Some(Command::Batch(BatchRequest { commands, .. })) => {
                commands.into_iter().flatten().next()
            }
            other => {
                assert_eq!(other, None, "a batch is a batch");
                None
            }
        };
        let of_a_line = match &expect {
            None => Err(ApiError::BAD_REQUEST),
            Some(command) => command.clone(),
        };
        assert_eq!(in_batch, expect, "{} is decoded differently in a batch", method.name());
        let line = format!(r#"{{"id":7,"{}":{text}}}"#, method.name());
        if without_halves(&line).is_some() {
            continue; // replaced in a body by `http`, in a line by its decoder
        }
        let StreamCommand { id, command } = decode_text(&line);
        assert_eq!(command, of_a_line, "{} is decoded differently in a stream", method.name());
        assert_eq!(id.map(|id| id.get().to_owned()), Some("7".to_owned()), "the id of a line");
    }
}

/// Asserts that bytes are a request of a method, chosen by the first byte, or an error, and that a command of a batch is decoded in
/// the same way.
pub fn message(bytes: &[u8]) {
    let [first, message @ ..] = bytes else { return };
    let rpc = &schema::RPCS[usize::from(*first) % schema::RPCS.len()];
    let alone = protobuf::request(rpc, message);
    let Some(field) = schema::Command.fields.iter().find(|field| field.name == rpc.method.name())
    else {
        return;
    };
    let mut command = Vec::new();
    protobuf::varint(&mut command, u64::from(field.number << 3 | 2));
    protobuf::varint(&mut command, message.len() as u64);
    command.extend_from_slice(message);
    match (alone, protobuf::command(&command)) {
        (Ok(alone), Ok(in_batch)) => assert_eq!(in_batch, Ok(alone), "{}", rpc.name),
        (alone, in_batch) => assert!(alone.is_err() && in_batch.is_err(), "{alone:?} {in_batch:?}"),
    }
}

/// The command that a method decodes from its parameters; `None` for null and errors.
fn decoded(method: Method, text: &str) -> Option<Command> {
    let mut json = serde_json::Deserializer::from_str(text);
    let command = method.deserialize(AnyCase(&mut json)).ok()??;
    if json.end().is_ok() { Some(command) } else { None }
}
