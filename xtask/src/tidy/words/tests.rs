//! Tests of the forbidden words.
//! In: short files in three languages → out: the lines that were found.
//! Uses nothing but the check; the words stand in strings here, where they are allowed.
//! The words themselves are rows of `words.rs`.

use super::*;

fn check_one(path: &str, text: &str, lines: &[usize]) {
    let found: Vec<usize> =
        check(&[Source::new(path, text)]).iter().map(|finding| finding.line).collect();
    assert_eq!(found, lines, "{path}: {text:?}");
}

#[test]
fn marks_are_found_in_code_and_comments() {
    check_one("crates/ws/src/a.rs", "// FIXME later\nfn a() {}\n// XXX\n", &[1, 3]);
}

#[test]
fn hidden_tests_are_found() {
    check_one("crates/ws/src/a/tests.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n", &[2]);
    check_one("crates/ws/src/a/tests.rs", "#[test]\n#[should_panic]\nfn a() {}\n", &[2]);
}

#[test]
fn words_in_strings_are_only_strings() {
    check_one("crates/ws/src/a.rs", "const A: &str = \"FIXME\";\n", &[]);
}

#[test]
fn tests_do_not_sleep() {
    check_one("crates/ws/tests/it/main.rs", "fn a() {\n    std::thread::sleep(b);\n}\n", &[2]);
    check_one("crates/ws/src/a/tests.rs", "tokio::time::sleep(b).await;\n", &[1]);
    check_one("tests/interop/python/test_a.py", "await asyncio.sleep(1)\n", &[1]);
}

#[test]
fn only_the_crate_with_the_waits_of_tests_spins() {
    for spin in ["std::thread::park_timeout(b);\n", "tokio::task::yield_now().await;\n"] {
        check_one("bench/src/main.rs", spin, &[1]);
        check_one("crates/ws/tests/it/main.rs", spin, &[1]);
        check_one("crates/testing/src/wait.rs", spin, &[]);
    }
}

#[test]
fn a_program_that_is_no_test_may_sleep() {
    check_one("bench/src/main.rs", "std::thread::sleep(b);\n", &[]);
}
