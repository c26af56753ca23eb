//! Tests of the size limits and of their shrinking list of exceptions.
//! In: made-up files and exceptions → out: the findings.
//! Uses nothing but the check; never reads a file.
//! The real exceptions are rows of `sizes.rs`.

use super::*;

fn function(lines: usize) -> String {
    format!("fn long() {{\n{}}}\n", "    a();\n".repeat(lines - 2))
}

fn check_one(text: &str, tables: &[Table], long: &[LongFunction]) -> Vec<Finding> {
    check_with(&[Source::new("crates/ws/src/a.rs", text)], tables, long)
}

#[test]
fn seventy_lines_are_allowed_and_seventy_one_are_not() {
    assert_eq!(check_one(&function(90), &[], &[]), []);
    assert_eq!(check_one(&function(91), &[], &[]).len(), 1);
}

#[test]
fn a_file_stops_at_six_hundred_lines() {
    assert_eq!(check_one(&"// a\n".repeat(600), &[], &[]), []);
    assert_eq!(check_one(&"// a\n".repeat(601), &[], &[])[0].line, 601);
}

#[test]
fn a_named_exception_is_allowed_while_it_is_needed() {
    let row = || LongFunction { path: "crates/ws/src/a.rs", name: "long" };
    assert_eq!(check_one(&function(91), &[], &[row()]), []);
    let findings = check_one(&function(90), &[], &[row()]);
    assert!(findings[0].what.contains("no longer needed"));
}

#[test]
fn a_table_that_shrank_loses_its_exception() {
    let row = || Table { path: "crates/ws/src/a.rs", why: "one row per key" };
    assert_eq!(check_one(&"// a\n".repeat(700), &[row()], &[]), []);
    assert_eq!(check_one("// a\n", &[row()], &[]).len(), 1);
}
