//! Tests of the rule on bars of time.
//! In: lines of tests → out: what is found.
//! Uses nothing but the check; the bars stand in strings here.
//! The files that may have one are rows of `times.rs`.

use super::*;

const PATH: &str = "crates/ws/tests/it/main.rs";
const ROW: (&str, &str) = (PATH, "it is the promise");
const BAR: &str = "fn a() {\n    assert!(began.elapsed() < LIMIT);\n}\n";

fn check_one(text: &str, listed: &[(&str, &str)], lines: &[usize]) {
    let found = check_with(&[Source::new(PATH, text)], listed);
    let found: Vec<usize> = found.iter().map(|finding| finding.line).collect();
    assert_eq!(found, lines, "{text}");
}

#[test]
fn a_bar_of_time_needs_a_row() {
    check_one(BAR, &[], &[2]);
    check_one(BAR, &[ROW], &[]);
}

#[test]
fn a_row_without_a_bar_is_found() {
    check_one("fn a() {}\n", &[ROW], &[0]);
}

#[test]
fn a_time_that_has_to_pass_is_no_bar() {
    check_one("assert!(began.elapsed() >= PAUSE);\n", &[], &[]);
    check_one("while began.elapsed() < PAUSE {}\n", &[], &[]);
}
