//! Which tests a test runner skipped, and why, cut out of all it printed.
//! In: the output of node --test, unittest or go test → out: `name: reason` for each.
//! May read text only; a skipped test whose line is not understood is counted by `tally` and not named.
//! A new runner is a function here and its counts in `tally`.

use std::collections::HashMap;

/// The lines in the output of tests of a report in JUnit's XML, as the tests printed them.
pub(super) fn of_nextest(report: &str) -> String {
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let text = report.replace("<system-err>", "\n");
    escapes.into_iter().fold(text, |text, (escape, character)| text.replace(escape, character))
}

/// `﹣ name (0.3ms) # reason`, or `ok 2 - name # SKIP reason`.
pub(super) fn of_node(output: &str) -> Vec<String> {
    let spec = |line: &str| {
        let (test, reason) = line.strip_prefix("﹣ ")?.split_once("ms) # ")?;
        Some(named(test.rsplit_once(" (")?.0, reason.strip_prefix("SKIP").unwrap_or(reason)))
    };
    let tap = |line: &str| {
        let (test, reason) = line.strip_prefix("ok ")?.split_once(" # SKIP")?;
        Some(named(test.split_once(" - ")?.1, reason))
    };
    let lines = output.lines().map(str::trim_start);
    lines.filter_map(|line| spec(line).or_else(|| tap(line))).collect()
}

/// `test_name (module.Class.test_name) ... skipped 'reason'`.
pub(super) fn of_unittest(output: &str) -> Vec<String> {
    let skipped = output.lines().filter_map(|line| line.split_once(" ... skipped "));
    skipped.map(|(test, reason)| named(test, reason.trim_matches(['\'', '"']))).collect()
}

/// `--- SKIP: Name (0.0s)`; the reason is what the test printed last.
pub(super) fn of_go(output: &str) -> Vec<String> {
    let mut current = "";
    let mut printed = HashMap::new();
    let mut skipped = Vec::new();
    for line in output.lines() {
        if line.starts_with("=== ") {
            current = line.split_whitespace().nth(2).unwrap_or_default();
        } else if let Some((file, said)) = line.trim_start().split_once(": ")
            && file.contains("_test.go:")
        {
            printed.insert(current, said);
        } else if let Some(test) = line.trim_start().strip_prefix("--- SKIP: ") {
            let name = test.split(' ').next().unwrap_or_default();
            skipped.push(named(name, printed.get(name).unwrap_or(&"")));
        }
    }
    skipped
}

fn named(test: &str, reason: &str) -> String {
    match reason.trim() {
        "" => test.to_owned(),
        reason => format!("{test}: {reason}"),
    }
}

#[cfg(test)]
mod tests;
