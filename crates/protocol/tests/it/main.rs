//! The crate from outside: every message of the protocol in both encodings, and any bytes at all.
//! In: `proto/client.proto` as the truth about names, numbers and kinds. Out: verdicts.
//! Uses the public face, serde_json values and proptest.
//! Tests of one module are next to it in `src`.
#![forbid(unsafe_code)]

mod any_bytes;
mod every_message;
mod maps;
mod schema;
