//! Tests of kinds: which values fit, and what is said about those that do not.
//! In: JSON and texts → out: values, or expectations.
//! Uses kinds alone. Never: rows.
//! A rule about one kind of value is a line here.

use std::time::Duration;

use serde_json::json;

use super::{Kind, Misfit, Value};

const COUNT: Kind = Kind::Integer { min: 1, max: 10 };
const DELAY: Kind = Kind::Duration { min: Duration::from_secs(1), max: Duration::from_secs(3600) };

fn check(kind: Kind, json: serde_json::Value, expected: Result<Value, Misfit>) {
    assert_eq!(kind.read(&json), expected, "{kind:?} from {json}");
}

fn wrong_type(expected: &str) -> Result<Value, Misfit> {
    Err(Misfit::Type(expected.to_owned()))
}

fn out_of_range(expected: &str) -> Result<Value, Misfit> {
    Err(Misfit::Range(expected.to_owned()))
}

#[test]
fn values_of_the_right_type_inside_the_limits_fit() {
    check(Kind::Switch, json!(true), Ok(Value::Switch(true)));
    check(COUNT, json!(10), Ok(Value::Integer(10)));
    check(DELAY, json!("1m30s"), Ok(Value::Duration(Duration::from_secs(90))));
    check(Kind::Text, json!("x"), Ok(Value::Text("x".into())));
    check(Kind::Choice(&["a", "b"]), json!("b"), Ok(Value::Text("b".into())));
    check(Kind::Path, json!("/x/y"), Ok(Value::Text("/x/y".into())));
    check(Kind::List, json!(["a", "b"]), Ok(Value::List(vec!["a".into(), "b".into()])));
    check(Kind::List, json!("a b"), Ok(Value::List(vec!["a".into(), "b".into()]))); // as Centrifugo reads it
    check(Kind::Objects, json!([{}]), Ok(Value::Tree(json!([{}]))));
}

#[test]
fn a_plain_number_is_no_duration_and_hears_why() {
    let expected = "a duration such as \"300ms\", \"25s\" or \"1m30s\", from 1s to 1h; \
                    a plain number has no unit";
    check(DELAY, json!(25), wrong_type(expected));
}

#[test]
fn switches_and_numbers_may_stand_in_quotes() {
    check(Kind::Switch, json!("true"), Ok(Value::Switch(true)));
    check(Kind::Switch, json!("F"), Ok(Value::Switch(false)));
    check(COUNT, json!("5"), Ok(Value::Integer(5)));
}

#[test]
fn what_stands_in_quotes_is_judged_as_without_them() {
    let count = "a whole number from 1 to 10";
    for text in ["yes", "on", "no", "2", "", " true"] {
        check(Kind::Switch, json!(text), wrong_type("true or false"));
    }
    for text in ["", "five", "0x5", "5s", "1_0", "5 5", "+5"] {
        check(COUNT, json!(text), wrong_type(count));
    }
    check(COUNT, json!("1.5"), wrong_type(count));
    check(COUNT, json!("11"), out_of_range(count));
    check(COUNT, json!("-1"), out_of_range(count));
}

#[test]
fn quotes_within_a_text_are_named() {
    let quoted =
        |expected: &str| wrong_type(&format!("{expected}; the quotes are part of the value"));
    assert_eq!(COUNT.read_text("\"5\""), quoted("a whole number from 1 to 10"));
    assert_eq!(Kind::Switch.read_text("'true'"), quoted("true or false"));
    let delay = "a duration such as \"300ms\", \"25s\" or \"1m30s\", from 1s to 1h";
    assert_eq!(DELAY.read_text("\"25s\""), quoted(delay));
    assert_eq!(DELAY.read_text("\""), wrong_type(delay));
}

#[test]
fn other_types_hear_what_would_be_right() {
    check(Kind::Switch, json!(1), wrong_type("true or false"));
    check(COUNT, json!(1.5), wrong_type("a whole number from 1 to 10"));
    check(Kind::Text, json!(true), wrong_type("a text; written in quotes"));
    check(Kind::List, json!(["a", true]), wrong_type("a list of texts"));
    check(Kind::Objects, json!(["a"]), wrong_type("a list of sections"));
    check(Kind::Block, json!([]), wrong_type("a section of keys"));
}

#[test]
fn values_outside_the_limits_hear_the_limits() {
    let delay = "a duration such as \"300ms\", \"25s\" or \"1m30s\", from 1s to 1h";
    check(COUNT, json!(0), out_of_range("a whole number from 1 to 10"));
    check(COUNT, json!(-1), out_of_range("a whole number from 1 to 10"));
    check(COUNT, json!(11), out_of_range("a whole number from 1 to 10"));
    check(DELAY, json!("999ms"), out_of_range(delay));
    check(DELAY, json!("-1"), out_of_range(delay));
    check(Kind::Choice(&["a", "b"]), json!("c"), out_of_range("one of \"a\", \"b\""));
    for path in ["", "api", "/a{b}", "/a b", "/a?b", "/é"] {
        check(
            Kind::Path,
            json!(path),
            out_of_range("a path of letters, digits and -._~ that begins with /"),
        );
    }
}

#[test]
fn texts_of_the_environment_become_values_of_the_key() {
    let check = |kind: Kind, text: &str, expected: Value| {
        assert_eq!(kind.read_text(text), Ok(expected), "{kind:?} from {text:?}");
    };
    check(Kind::Switch, "1", Value::Switch(true));
    check(Kind::Switch, "FALSE", Value::Switch(false));
    check(COUNT, "7", Value::Integer(7));
    check(DELAY, "25s", Value::Duration(Duration::from_secs(25)));
    check(Kind::List, "  a  b ", Value::List(vec!["a".into(), "b".into()]));
    check(Kind::List, "", Value::List(vec![]));
    check(Kind::List, r#"["a", "b c"]"#, Value::List(vec!["a".into(), "b c".into()]));
    check(Kind::List, "[::1]:6379 7", Value::List(vec!["[::1]:6379".into(), "7".into()]));
    check(Kind::Objects, r#"[{"name":"x"}]"#, Value::Tree(json!([{"name": "x"}])));
}

#[test]
fn texts_that_are_no_value_of_the_key_hear_what_would_be_right() {
    assert_eq!(COUNT.read_text("many"), wrong_type("a whole number from 1 to 10"));
    assert_eq!(COUNT.read_text("11"), out_of_range("a whole number from 1 to 10"));
    assert_eq!(Kind::Switch.read_text("yes"), wrong_type("true or false"));
    assert_eq!(Kind::Objects.read_text("a b"), wrong_type("a list of sections, as JSON"));
}

#[test]
fn forms_that_centrifugo_reads_are_read() {
    check(Kind::Text, json!(6379), Ok(Value::Text("6379".into())));
    check(Kind::Secret, json!(12345), Ok(Value::Text("12345".into())));
    check(Kind::List, json!([1, "b"]), Ok(Value::List(vec!["1".into(), "b".into()])));
    check(Kind::Choice(&["info", "debug"]), json!("INFO"), Ok(Value::Text("info".into())));
    check(COUNT, json!(10.0), Ok(Value::Integer(10)));
    check(COUNT, json!(9.5), wrong_type("a whole number from 1 to 10"));
    check(COUNT, json!(11.0), out_of_range("a whole number from 1 to 10"));
}
