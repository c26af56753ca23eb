//! Lines of a test runner about the tests that failed, cut out of all it printed.
//! In: the output of cargo test, node --test, unittest, go test or any program → out: the lines that say why, at most [`LINES_MAX`].
//! May read text only; output it cannot make sense of gives its last lines.
//! A new runner is a function here and its counts in `tally`.

use std::collections::HashSet;

/// Returns the lines from `failures:` to `test result:`, for each binary that has failed.
pub(super) fn of_cargo(output: &str) -> String {
    let mut is_inside = false;
    let inside = output.lines().filter(|line| {
        is_inside = (is_inside || *line == "failures:") && !line.starts_with("test result:");
        is_inside
    });
    or_last(output, inside)
}

/// The lines from the summary on: names of tests, and what those printed that failed.
pub(super) fn of_nextest(output: &str) -> String {
    let is_summary = |line: &&str| line.trim_start().starts_with("Summary [");
    or_last(output, output.lines().skip_while(|line| !is_summary(line)))
}

/// The list of failing tests, which stands at the end.
pub(super) fn of_node(output: &str) -> String {
    let is_heading = |line: &&str| line.starts_with('✖') && line.ends_with("failing tests:");
    or_last(output, output.lines().skip_while(|line| !is_heading(line)))
}

/// Returns the lines from the first ruler before a traceback to the count of tests.
pub(super) fn of_unittest(output: &str) -> String {
    let from = output.lines().skip_while(|line| !line.starts_with("======"));
    or_last(output, from.take_while(|line| !line.starts_with("Ran ")))
}

/// Returns the lines under the names of failed tests; tests that run at once take turns under such names.
pub(super) fn of_go(output: &str) -> String {
    let verdict = |line: &'_ str| -> Option<String> {
        let name = line.trim_start().strip_prefix("--- FAIL: ")?.split(' ').next()?;
        Some(name.to_owned())
    };
    let failed: HashSet<String> = output.lines().filter_map(verdict).collect();
    let mut is_of_failed = false;
    let of_failed = output.lines().filter(|line| {
        if line.starts_with("=== ") {
            is_of_failed = line.split_whitespace().nth(2).is_some_and(|name| failed.contains(name));
        }
        let is_passed = line.trim_start().starts_with("--- PASS: ");
        verdict(line).is_some() || (is_of_failed && !is_passed)
    });
    or_last(output, of_failed)
}

/// The last lines, where a program that does one thing says what is wrong.
pub(super) fn of_program(output: &str) -> String {
    or_last(output, std::iter::empty())
}

fn or_last<'a>(output: &'a str, lines: impl Iterator<Item = &'a str>) -> String {
    let mut said: Vec<&str> = lines.take(LINES_MAX).collect();
    if said.is_empty() {
        said = output.lines().rev().take(LAST_LINES).collect();
        said.reverse();
    }
    said.join("\n")
}

/// Enough for some failed tests with what they printed; the whole of it stands above.
const LINES_MAX: usize = 200;

const LAST_LINES: usize = 40;

#[cfg(test)]
mod tests;
