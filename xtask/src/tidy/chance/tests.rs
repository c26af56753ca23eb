//! Tests of the rule about time and chance.
//! In: made-up files → out: the lines that break it.
//! Uses the check only; never reads a file.
//! Which sources there are is a table of `chance.rs`.

use super::*;

fn lines(path: &str, code: &str) -> Vec<usize> {
    check(&[Source::new(path, code)]).iter().map(|finding| finding.line).collect()
}

#[test]
fn a_clock_of_its_own_is_found_in_crates_that_are_simulated() {
    let code = "fn f() {\n    let now = Instant::now();\n    let id = rand::random();\n}\n";
    assert_eq!(lines("crates/node/src/hub.rs", code), [2, 3]);
    assert_eq!(lines("crates/edge/src/lib.rs", code), [0; 0]);
}

#[test]
fn tests_suites_and_listed_lines_may_have_one() {
    let code = "let now = Instant::now();\n";
    let paths = [
        "crates/node/src/hub/tests.rs",
        "crates/broker/src/broker/conformance.rs",
        "crates/node/src/broadcast.rs",
    ];
    paths.iter().for_each(|path| assert_eq!(lines(path, code), [0; 0], "{path}"));
}
