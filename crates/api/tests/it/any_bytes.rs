//! The properties of `src/fuzzing.rs` as a property test.
//! In: random bytes, and bodies composed of parts of requests. Out: no panic.
//! Uses `fuzzing` and proptest, which prints failing inputs.
//! A property is written in `src/fuzzing.rs`; this file only generates input.

use fanwire_api::fuzzing;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

proptest! {
    #[test]
    fn random_bytes_keep_the_properties(bytes in vec(any::<u8>(), 0..60)) {
        fuzzing::body(&bytes);
        fuzzing::message(&bytes);
    }

    #[test]
    fn fields_keep_the_properties(fields in vec(field(), 0..6)) {
        fuzzing::body(format!("{{{}}}", fields.join(",")).as_bytes());
    }

    #[test]
    fn json_fragments_keep_the_properties(pieces in vec(piece(), 0..12)) {
        fuzzing::body(pieces.concat().as_bytes());
    }
}

fn field() -> impl Strategy<Value = String> {
    let names = [
        "channel",
        "channels",
        "data",
        "b64data",
        "tags",
        "limit",
        "since",
        "reverse",
        "user",
        "client",
        "session",
        "whitelist",
        "disconnect",
        "Disconnect",
        "expire_at",
        "info",
        "override",
        "recover_since",
        "pattern",
        "method",
        "params",
        "version",
        "delta",
        "commands",
        "other",
    ];
    (select(names.to_vec()), piece()).prop_map(|(name, value)| format!("\"{name}\":{value}"))
}

fn piece() -> impl Strategy<Value = &'static str> {
    select(vec![
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1e3",
        "18446744073709551616",
        "\"\"",
        "\"a\"",
        "\"\\ud800\"",
        "[]",
        "[\"a\"]",
        "[null]",
        "{}",
        "{\"a\":\"b\"}",
        "{\"code\":4000,\"reason\":\"r\"}",
        "{\"offset\":1,\"epoch\":\"e\"}",
        "{\"presence\":{\"value\":true}}",
        "[{}]",
        " ",
        "\n",
        "{",
        "]",
        ",",
    ])
}
