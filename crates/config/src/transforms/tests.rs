//! Tests of the form of `transforms`.
//! In: JSON values → out: rows, or a refusal.
//! Uses no configuration; what the numbers may be is tested in `rules/tests.rs`.
//! A form of a row is a line here.

use serde_json::json;

use fanwire_edge::StatusAndBody;

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

#[test]
fn statuses_become_errors_or_disconnects() {
    let list = json!([
        {"status_code": 404, "to_error": {"code": 404, "message": "not found", "temporary": true}},
        {"status_code": 401, "to_disconnect": {"code": 4501, "reason": "no"}, "to_error": {"code": 0, "message": ""}},
        {"status_code": 100, "to_error": {"code": 1}, "to_disconnect": null},
    ]);
    assert!(Transforms::Statuses.take(&list));
    assert_eq!(Transforms::Statuses.mistake(&list), None);
    let error = |code, message: &str, temporary| StatusMeaning::Error {
        code,
        message: message.to_owned(),
        temporary,
    };
    let to = [
        error(404, "not found", true),
        StatusMeaning::Disconnect { code: 4501, reason: "no".to_owned() },
        error(1, "", false),
    ];
    let expected = [404, 401, 100].into_iter().zip(to);
    let expected = expected.map(|(status_code, to)| StatusTransform { status_code, to });
    assert_eq!(statuses(&list), expected.collect::<Vec<_>>());
}

#[test]
fn statuses_with_a_mistake_name_their_row() {
    let long = "x".repeat(124);
    for (row, expected) in [
        (json!({"status_code": 404}), "either to_error"),
        (json!({"status_code": 404, "to_error": {"code": 0}}), "either to_error"),
        (
            json!({"status_code": 404, "to_error": {"code": 1}, "to_disconnect": {"code": 4000}}),
            "either to_error",
        ),
        (json!({"to_error": {"code": 1}}), "a status_code"),
        (json!({"status_code": 600, "to_error": {"code": 1}}), "a status_code"),
        (json!({"status_code": 99, "to_disconnect": {"code": 4000}}), "a status_code"),
        (
            json!({"status_code": 404, "to_error": {"code": 1, "message": "ü"}}),
            "a message or reason",
        ),
        (
            json!({"status_code": 404, "to_disconnect": {"code": 1, "reason": long}}),
            "a message or reason",
        ),
    ] {
        let list = json!([{"status_code": 500, "to_error": {"code": 1}}, row]);
        assert!(Transforms::Statuses.take(&list), "{row}");
        let mistake = Transforms::Statuses.mistake(&list).unwrap_or_default();
        assert!(mistake.starts_with(expected) && mistake.ends_with("in row 2"), "{row}: {mistake}");
    }
    for row in [
        json!({"status_code": 404, "to": {}}),
        json!({"status_code": "404"}),
        json!({"to_disconnect": {"code": 70_000}}),
    ] {
        assert!(!Transforms::Statuses.take(&json!([row])), "{row}");
    }
}
