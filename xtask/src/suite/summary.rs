//! The end of a run: what failed, what was not run, a row for each step, and the sums.
//! In: rows → out: text on the terminal, whose last line is `N passed, N failed` or `N passed, N failed, N skipped`.
//! May print only; the reasons stand above already, but only the end of a long output may be kept.
//! Changed here: what a row looks like; what counts as passed, failed and skipped in `tally`.

use std::time::Duration;

use super::tally::Tally;

/// A step that has ended.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) tally: Tally,
    pub(super) took: Duration,
}

/// Prints the summary; `true` when nothing failed.
pub(super) fn print(rows: &[Row]) -> bool {
    for row in rows.iter().filter(|row| !row.tally.reasons.is_empty()) {
        println!("\n=== {}: what failed\n{}", row.name, row.tally.reasons);
    }
    if rows.iter().any(|row| row.tally.skipped > 0) {
        println!("\n=== what was not run");
    }
    for row in rows {
        row.tally.not_run.iter().for_each(|reason| println!("{}: {reason}", row.name));
    }
    for row in rows {
        row.tally.flaky.iter().for_each(|test| println!("FLAKY: {}: {test}", row.name));
    }
    println!("\n=== summary");
    rows.iter().for_each(|row| println!("{row}"));
    let total = within_budget(rows.iter().map(|row| row.tally.clone()).sum());
    println!("{}", sums(&total));
    total.failed == 0
}

/// Counts the flaky tests above [`FLAKY_MAX`] as failed.
fn within_budget(mut total: Tally) -> Tally {
    let above = total.flaky.len().saturating_sub(FLAKY_MAX);
    total.passed -= above;
    total.failed += above;
    total
}

/// The last line, which other programs read.
fn sums(total: &Tally) -> String {
    let Tally { passed, failed, skipped, .. } = total;
    match skipped {
        0 => format!("{passed} passed, {failed} failed"),
        _ => format!("{passed} passed, {failed} failed, {skipped} skipped"),
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { passed, failed, skipped, .. } = &self.tally;
        write!(f, "{:<10} {:>7.1} s  ", self.name, self.took.as_secs_f64())?;
        write!(f, "{passed} ok, {failed} failed")?;
        if *skipped > 0 {
            write!(f, ", {skipped} skipped")?;
        }
        match self.tally.flaky.len() {
            0 => Ok(()),
            count => write!(f, ", {count} flaky"),
        }
    }
}

/// Tests of a run that may pass at their second try. Each of them has a cause that is to be mended.
const FLAKY_MAX: usize = 3;

#[cfg(test)]
mod tests;
