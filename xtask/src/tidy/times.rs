//! Tests that assert an elapsed time from above, which a busy machine makes fail: each is listed with its reason.
//! In: the Rust files of tests → out: a finding per such line in a file without a row, and per row without such a line.
//! May read code as the lexer leaves it; a wait with patience is no such test, and has `wait_for` of fanwire-testing.
//! Changed here: the table `TIMED`, and how such a line is recognised.

use super::lexer::lex;
use super::{Finding, Source};

/// Finds tests with a bar of time that are not listed.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    check_with(rust, TIMED)
}

fn check_with(rust: &[Source], listed: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in rust.iter().filter(|source| source.is_test()) {
        let code = lex(&source.text).code;
        let bars: Vec<usize> = (code.lines().enumerate())
            .filter(|(_, line)| has_bar(line))
            .map(|(line, _)| line + 1)
            .collect();
        let is_listed = listed.iter().any(|(path, _)| *path == source.path);
        for line in bars.iter().filter(|_| !is_listed) {
            let what = "asserts that little time has passed: wait_for, or a row of TIMED";
            findings.push(Finding::new(&source.path, *line, what.to_owned()));
        }
        if is_listed && bars.is_empty() {
            findings.push(Finding::new(
                &source.path,
                0,
                "has no bar of time: drop its row of TIMED".to_owned(),
            ));
        }
    }
    findings
}

fn has_bar(line: &str) -> bool {
    line.contains("assert!(") && BARS.iter().any(|bar| line.contains(bar))
}

const BARS: &[&str] = &[".elapsed() <", "longest <"];

/// Files of tests with such bars. Behind each stands what its bars show, and why they hold on a busy machine.
const TIMED: &[(&str, &str)] = &[
    (
        "crates/redis/tests/it/faults.rs",
        "a Redis that hangs costs a call its timeout of 1 s, and not that of a lost connection; the bar is 8 s",
    ),
    (
        "crates/redis/tests/it/network.rs",
        "no call takes longer than its timeouts together, whatever the network does; the bar adds 3 s to them",
    ),
    (
        "crates/redis/tests/it/wait.rs",
        "writes without a replica end by their timeout of 1 s, not by that of the connection, 90 s; the bar is 30 s",
    ),
    (
        "crates/proxy/src/tests.rs",
        "1,000 calls to a backend that stalls end together, not one after another; the bar is 20 s",
    ),
];

#[cfg(test)]
mod tests;
