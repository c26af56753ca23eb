//! Tests of the unsafe rule.
//! In: made-up files → out: the findings.
//! Uses nothing but the check; never reads a file.
//! The real exceptions are rows of `unsafety.rs`.

use super::*;

const ROW: UnsafeFile = UnsafeFile {
    path: "crates/ws/src/mask.rs",
    root: "crates/ws/src/lib.rs",
    why: "twice the speed",
};

fn check_one(path: &str, text: &str, allowed: &[UnsafeFile]) -> Vec<Finding> {
    check_with(&[Source::new(path, text)], allowed)
}

#[test]
fn every_crate_root_forbids_unsafe_code() {
    assert_eq!(check_one("crates/ws/src/lib.rs", "#![forbid(unsafe_code)]\n", &[]), []);
    assert_eq!(check_one("crates/ws/src/lib.rs", "pub mod a;\n", &[]).len(), 1);
    assert_eq!(check_one("crates/ws/tests/it/main.rs", "mod a;\n", &[]).len(), 1);
    assert_eq!(check_one("crates/ws/src/frame.rs", "mod a;\n", &[]), []);
}

#[test]
fn unsafe_stands_only_in_named_files() {
    let text = "fn f() {\n    unsafe { g() }\n}\n";
    assert_eq!(check_one("crates/ws/src/mask.rs", text, &[ROW]), []);
    assert_eq!(check_one("crates/ws/src/frame.rs", text, &[])[0].line, 2);
}

#[test]
fn the_word_in_a_comment_or_string_is_no_unsafe_code() {
    assert_eq!(
        check_one("crates/ws/src/a.rs", "// unsafe\nconst A: &str = \"unsafe\";\n", &[]),
        []
    );
}

#[test]
fn a_named_file_without_unsafe_code_loses_its_row() {
    assert_eq!(check_one("crates/ws/src/mask.rs", "fn f() {}\n", &[ROW]).len(), 1);
}
