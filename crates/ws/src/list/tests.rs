//! Tests of `list`: elements of header values (RFC 9110 §5.6).
//! A value → its elements.
//! Uses only `list`.
//! Changed here: cases of list syntax.

use super::*;

#[test]
fn elements_are_trimmed_of_spaces_and_tabs() {
    check("a, b ,\tc", &["a", "b", "c"]);
    check("", &[""]);
    check("a,,b,", &["a", "", "b", ""]);
}

#[test]
fn a_separator_in_a_quoted_string_separates_nothing() {
    check(r#"a="1,2",b"#, &[r#"a="1,2""#, "b"]);
    check(r#"a="\",",b"#, &[r#"a="\",""#, "b"]);
    check(r#"a="\\",b"#, &[r#"a="\\""#, "b"]);
    check(r#"a="open,b"#, &[r#"a="open,b"#]);
}

#[test]
fn a_token_is_found_whatever_its_case_and_place() {
    assert!(has_token("keep-alive, Upgrade", "upgrade"));
    assert!(has_token("UPGRADE", "upgrade"));
    assert!(!has_token("upgraded", "upgrade"));
    assert!(!has_token("keep-alive upgrade", "upgrade"));
    assert!(!has_token("", "upgrade"));
}

fn check(value: &str, expect: &[&str]) {
    assert_eq!(split(value, ',').collect::<Vec<_>>(), expect, "{value}");
}
