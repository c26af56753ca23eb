//! Tests of the form of `transforms`.
//! In: JSON values → out: rows, or a refusal.
//! Uses no configuration; what the numbers may be is tested in `rules/tests.rs`.
//! A form of a row is a line here.

use serde_json::json;

use super::*;

#[test]
fn rows_have_a_code_and_what_it_becomes() {
    let list = json!([{"code": 109, "to": {"code": 4109, "reason": "old"}}, {"code": 1, "to": {}}]);
    assert!(Transforms::Disconnects.take(&list));
    let transforms = disconnects(&list);
    let to = |code, reason: &'static str| Disconnect { code, reason: reason.into() };
    assert_eq!(transforms[0], ConnectCodeTransform { code: 109, to: to(4109, "old") });
    assert_eq!(transforms[1], ConnectCodeTransform { code: 1, to: to(0, "") });
    let list = json!([{"code": 3500, "to": {"status_code": 401}}]);
    assert!(Transforms::Responses.take(&list));
    let to = StatusAndBody { status_code: 401, body: String::new() };
    assert_eq!(responses(&list), [ConnectCodeResponse { code: 3500, to }]);
    assert_eq!(responses(&json!([])), []);
}

#[test]
fn other_forms_are_refused() {
    for value in [
        json!({}),
        json!("a"),
        json!([1]),
        json!([{"code": "109"}]),
        json!([{"code": -1}]),
        json!([{"code": 109, "to": 401}]),
        json!([{"code": 109, "to": {"status_code": 401}}]),
        json!([{"code": 109, "to": {"code": 70_000}}]),
        json!([{"code": 109, "too": {}}]),
    ] {
        assert!(!Transforms::Disconnects.take(&value), "{value}");
    }
    for to in [json!({"status": 401}), json!({"code": 401}), json!({"status_code": "401"})] {
        assert!(!Transforms::Responses.take(&json!([{"code": 109, "to": to}])), "{to}");
    }
}
