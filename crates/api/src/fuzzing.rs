//! What must hold for any body at all: the body of a fuzz target, also run as a property test by `tests/it/any_bytes.rs`.
//! In: bytes from a fuzzer. Out: nothing, or a panic that names the broken promise.
//! Uses the decoders of requests; never a node, never part of the server.
//! A new face gets its promise here; the targets that call them live in the fuzz folder.

use serde::de::DeserializeSeed as _;
use serde_json::value::RawValue;

use crate::{ApiError, BatchRequest, Command, Method, openapi};

/// The body of a request: whichever method it is sent to, that method inside of a batch understands the same. And what
/// goes into the document of the API is JSON, whatever the prefix.
pub fn body(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some(prefix) = text.strip_prefix('/') {
        let document = openapi(prefix);
        assert!(serde_json::from_str::<&RawValue>(&document).is_ok(), "no JSON");
    }
    if serde_json::from_str::<&RawValue>(text).is_err() {
        for method in Method::ALL {
            assert_eq!(decoded(method, text), None, "{} takes what is no JSON", method.name());
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
        let found = match decoded(Method::Batch, &batch) {
            Some(Command::Batch(BatchRequest { commands, .. })) => commands.into_iter().next(),
            other => {
                assert_eq!(other, None, "a batch is a batch");
                None
            }
        };
        assert_eq!(found, expect, "{} means something else in a batch", method.name());
    }
}

/// What a method makes of parameters; null is none.
fn decoded(method: Method, text: &str) -> Option<Command> {
    let mut json = serde_json::Deserializer::from_str(text);
    let command = method.deserialize(&mut json).ok()??;
    json.end().is_ok().then_some(command)
}
