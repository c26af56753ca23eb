//! Tests of the search for merge markers.
//! In: texts with and without markers → out: the lines that were found.
//! Uses the search only; never asks git.
//! That tracked files of every type are read is seen in a run of `cargo xtask tidy`.

use super::*;

fn check_lines(text: &[u8], lines: &[usize]) {
    let found: Vec<usize> =
        find("docs/redis.md", text).iter().map(|finding| finding.line).collect();
    assert_eq!(found, lines, "{}", String::from_utf8_lossy(text));
}

#[test]
fn both_sides_of_a_merge_are_found() {
    check_lines(b"a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> fd27117\n", &[2, 6]);
}

#[test]
fn a_marker_counts_only_at_the_start_of_its_line() {
    check_lines(b"a\n `<<<<<<<`\nb >>>>>>>\nTitle\n=======\n", &[]);
}

#[test]
fn files_that_are_not_text_are_searched_too() {
    check_lines(b"\xff\xfe\n>>>>>>> fd27117", &[2]);
}
