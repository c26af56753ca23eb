//! Tests of error texts for invalid bodies.
//! In: bodies and the errors of their parser. Out: lines of text.
//! Uses `Method::decode`, which makes the errors. Never: a request.
//! A new kind of error is a row here.

use proptest::prelude::*;

use super::describe;
use crate::Method;

fn check(method: Method, body: &str, expected: &str) {
    let error = method.decode(body).expect_err(body);
    assert_eq!(describe(body, &error), expected, "{body}");
}

#[test]
fn a_wrong_type_is_described_with_the_field_and_the_position() {
    check(
        Method::Publish,
        r#"{"channel":1,"data":{}}"#,
        "channel: invalid type: integer `1`, expected a string at line 1 column 12",
    );
    check(
        Method::Publish,
        "{\"data\": {\"a\": [1, \"}\\\"{\"]},\n \"tags\": {\"k\\\"\": 1}}",
        "tags.k\\\": invalid type: integer `1`, expected a string at line 2 column 18",
    );
    check(
        Method::Batch,
        r#"{"commands":[{"publish":{"channel":"a","data":[1]}},{"publish":{"channel":[]}}]}"#,
        "commands[1].publish.channel: invalid type: sequence, expected a string at line 1 column 74",
    );
}

#[test]
fn invalid_json_is_described_with_its_position() {
    check(Method::Publish, "", "EOF while parsing a value at line 1 column 0");
    check(Method::Publish, "{", "EOF while parsing an object at line 1 column 1");
    check(Method::Publish, "null", "null is no JSON object");
    check(
        Method::Publish,
        "[]",
        "invalid type: sequence, expected a JSON object at line 1 column 0",
    );
    check(
        Method::Publish,
        r#"{"channel":"a","data":{"x":}}"#,
        "data.x: expected value at line 1 column 28",
    );
    check(
        Method::Publish,
        r#"{"channel":"a","data":{}} x"#,
        "trailing characters at line 1 column 27",
    );
}

#[test]
fn a_long_text_is_shortened() {
    let long = "x".repeat(1000);
    for body in [
        format!(r#"{{"skip_history":"{long}"}}"#),
        format!(r#"{{"tags":{{"{long}":1}}}}"#),
        "[".repeat(1000),
        format!(r#"{{"data":{}"#, r#"{"x":"#.repeat(1000)),
    ] {
        let error = Method::Publish.decode(&body).expect_err("it is wrong");
        let line = describe(&body, &error);
        assert!(line.len() < 300 && line.contains(" at line 1 column "), "{line}");
    }
}

proptest! {
    #[test]
    fn no_body_panics(body in "[\\[\\]{}\",:a\\\\é1\n ]{0,60}") {
        for method in [Method::Publish, Method::Batch] {
            if let Err(error) = method.decode(&body) {
                prop_assert!(!describe(&body, &error).is_empty());
            }
        }
    }
}
