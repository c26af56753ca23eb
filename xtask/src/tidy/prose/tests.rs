//! Tests of the search for words in comments and pages.
//! In: made-up files → out: the findings.
//! Uses the search only; never reads a file.
//! The words themselves are rows of `prose.rs`.

use super::*;

fn check_lines(path: &str, text: &str, lines: &[usize]) {
    let found = check(&[Source::new(path, text)]);
    let found: Vec<usize> = found.iter().map(|finding| finding.line).collect();
    assert_eq!(found, lines, "{path}: {text:?}");
}

#[test]
fn words_are_found_in_comments_and_pages() {
    check_lines("crates/ws/src/a.rs", "/// Anew.\nfn f() {} // likewise, nobody\n", &[1, 2, 2]);
    check_lines("docs/a.md", "Sockets to be\nhad.\n", &[]);
    check_lines("docs/a.md", "Sockets to be had, meanwhile.\n", &[1, 1]);
}

#[test]
fn code_strings_and_longer_words_are_left_alone() {
    check_lines("crates/ws/src/a.rs", "fn anew() { g(\"nobody\") } // besides\n", &[]);
    check_lines("tests/a.js", "// anew\n", &[]);
}

#[test]
fn long_lines_are_found_in_pages_that_people_write() {
    let text = format!("{}\n{}\n", "é".repeat(140), "é".repeat(141));
    check_lines("docs/a.md", &text, &[2]);
    check_lines("README.md", &text, &[2]);
    check_lines("docs/configuration.md", &text, &[]);
    check_lines("CHANGELOG.md", &text, &[]);
    check_lines("crates/ws/src/a.rs", &format!("// {text}"), &[]);
}
