//! Tests of `scan`: the grammar of RFC 8259, section by section, with serde_json as the second judge.
//! In: texts, right and wrong. Out: verdicts and counts of line ends.
//! Uses `fuzzing::payload` as the comparison.
//! Random texts run in `tests/it/any_bytes.rs`.

use super::*;
use crate::fuzzing::payload;

#[test]
fn values_of_every_kind_are_json() {
    let texts = [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "10",
        "-1.5",
        "1e5",
        "1E+5",
        "0.1e-99999",
        "\"\"",
        "\"a\"",
        "[]",
        "[ ]",
        "{}",
        "{ }",
        "[1,[2],{}]",
        "{\"a\":1,\"b\":[]}",
        " \t\r\n1 \n",
        r#""\"\\\/\b\f\n\r\t\u00e9\ud800""#,
        "\"é€😀\"",
        "{\"\":{\"\":[{}]}}",
    ];
    for text in texts {
        check(text.as_bytes(), true);
    }
}

#[test]
fn everything_else_is_not() {
    let texts = [
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "00",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1.e5",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\n\"",
        "\"\t\"",
        "[",
        "]",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "{",
        "}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{,}",
        "{\"a\":1]",
        "{\"a\" 1}",
        "{\"a\":1 2}",
        "1 2",
        "{}{}",
        "[]]",
        "'a'",
        "// 1",
        "\u{feff}1",
        "1\u{a0}",
        "{\"a\":1\"b\":2}",
        "\0",
    ];
    for text in texts {
        check(text.as_bytes(), false);
    }
}

#[test]
fn text_that_is_not_utf_8_is_no_json() {
    for text in [&b"\"\xff\""[..], b"\"\xc3\"", b"\"\xed\xa0\x80\"", b"{\"\xc0\x80\":1}"] {
        check(text, false);
    }
}

#[test]
fn a_string_ends_at_the_right_byte_wherever_it_starts() {
    for length in 0..40 {
        let plain = "x\u{7f}é".repeat(length);
        check(format!("\"{plain}\"").as_bytes(), true);
        check(format!("\"{plain}\" \"").as_bytes(), false);
        check(format!("\"{plain}\\\"\"").as_bytes(), true);
        check(format!("\"{plain}\\\\\"").as_bytes(), true);
        for control in 0..0x20u8 {
            check(format!("\"{plain}{}{plain}\"", char::from(control)).as_bytes(), false);
        }
    }
}

#[test]
fn nesting_has_no_limit() {
    for depth in [1, 2, 63, 64, 65, 127, 128, 129, 1000, 100_000] {
        let arrays = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        check(arrays.as_bytes(), true);
        check(&arrays.as_bytes()[1..], false);
        let mixed = format!("{}1{}", "[{\"a\":".repeat(depth), "}]".repeat(depth));
        check(mixed.as_bytes(), true);
        check(mixed.replacen("}]", "]}", 1).as_bytes(), false);
        check(mixed.trim_end_matches(']').as_bytes(), false);
    }
}

#[test]
fn line_ends_between_tokens_are_counted() {
    assert_eq!(line_ends_in_json(b"{\n\"a\": [\n\r1]}\r\n"), Some(5));
    assert_eq!(line_ends_in_json(br#""\n\r""#), Some(0));
    assert_eq!(line_ends_in_json(b"\r\n"), None);
}

#[test]
fn only_an_object_is_an_object() {
    assert!(is_json_object(b"{}"));
    assert!(is_json_object(b"\n {\"a\":[]} "));
    for text in ["[]", "\"{}\"", "{", "{}}", "5", "", " ", "null"] {
        assert!(!is_json_object(text.as_bytes()), "{text}");
    }
}

fn check(text: &[u8], expect: bool) {
    assert_eq!(is_json(text), expect, "{:?}", text.escape_ascii().to_string());
    payload(text);
}

#[test]
fn only_what_is_nested_deeper_than_the_limit_is_too_deep() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let objects = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let check = |text: String, expect| {
        assert!(is_json(text.as_bytes()), "{text}");
        assert_eq!(nests_too_deep(text.as_bytes()), expect, "{text}");
    };
    check(nested(JSON_DEPTH_MAX), false);
    check(nested(JSON_DEPTH_MAX + 1), true);
    check(objects(JSON_DEPTH_MAX), false);
    check(objects(JSON_DEPTH_MAX + 1), true);
    check(format!("[{}]", vec!["[1]"; 1000].join(",")), false);
    check(format!(r#"["{}"]"#, "[".repeat(600)), false);
    check(format!(r#"["\"{}\\",{}]"#, "[".repeat(600), nested(JSON_DEPTH_MAX - 1)), false);
    check(format!(r#"["\"\\",{}]"#, nested(JSON_DEPTH_MAX)), true);
    assert!(!nests_too_deep("]".repeat(600).as_bytes()));
    assert!(!nests_too_deep(format!("\"{}\\", "[".repeat(600)).as_bytes()), "it never ends");
}
