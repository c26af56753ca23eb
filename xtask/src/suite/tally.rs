//! How many tests passed and failed, read from what the test runners print.
//! In: the output of cargo test, node --test, unittest or go test → out: a `Tally`.
//! May read text only; a runner that failed without naming a failed test counts as one failure.
//! A new runner is a function here and in `reasons`; which runner a step uses is decided in `steps`.

mod reasons;

use crate::command::Outcome;

/// The result of one step. A step that was left out says why and counts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) left_out: Option<String>,
    /// What the runner said of its failures, to be shown again at the end of a long run.
    pub(crate) reasons: String,
}

impl Tally {
    pub(crate) fn counted(passed: usize, failed: usize) -> Self {
        Self { passed, failed, ..Self::default() }
    }

    pub(crate) fn left_out(reason: impl Into<String>) -> Self {
        Self { left_out: Some(reason.into()), ..Self::default() }
    }

    /// A check that either holds or does not.
    pub(crate) fn check(holds: bool) -> Self {
        Self::counted(usize::from(holds), usize::from(!holds))
    }

    /// A program that does one thing, or fails to.
    pub(crate) fn of_program(outcome: &Outcome) -> Self {
        Self::check(outcome.success).of_outcome(outcome, reasons::of_program)
    }

    /// Work that could not be done at all.
    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        Self { reasons: format!("error: {error:#}"), ..Self::check(false) }
    }

    /// Sums the `test result:` lines of cargo test.
    pub(crate) fn of_cargo(outcome: &Outcome) -> Self {
        let results = outcome.output.lines().filter(|line| line.starts_with("test result:"));
        let sum = results.map(|line| {
            let before = |word| number_before(line, word).unwrap_or(0);
            Self::counted(before(" passed"), before(" failed"))
        });
        sum.sum::<Self>().of_outcome(outcome, reasons::of_cargo)
    }

    /// Reads the closing lines of node --test: `# pass 3` or `ℹ pass 3`.
    pub(crate) fn of_node(outcome: &Outcome) -> Self {
        let closing = |word: &str| {
            let mut lines = outcome.output.lines().rev();
            lines.find_map(|line| {
                let line = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
                line.strip_prefix(word)?.trim().parse().ok()
            })
        };
        let failed = closing("fail ").unwrap_or(0) + closing("cancelled ").unwrap_or(0);
        Self::counted(closing("pass ").unwrap_or(0), failed).of_outcome(outcome, reasons::of_node)
    }

    /// Reads `Ran 5 tests in 1.2s` and `FAILED (failures=1, errors=1)` of Python's unittest.
    pub(crate) fn of_unittest(outcome: &Outcome) -> Self {
        let line = |start: &str| outcome.output.lines().rev().find(|line| line.starts_with(start));
        let ran = line("Ran ").and_then(|line| number_before(line, " test")).unwrap_or(0);
        let verdict = line("FAILED (").unwrap_or_default();
        let failed = ["failures=", "errors="].map(|key| number_after(verdict, key).unwrap_or(0));
        let failed: usize = failed.iter().sum();
        Self::counted(ran.saturating_sub(failed), failed).of_outcome(outcome, reasons::of_unittest)
    }

    /// Reads the `--- PASS: TestName/part (0.1s)` lines of go test -v; a test that has parts counts as its parts.
    pub(crate) fn of_go(outcome: &Outcome) -> Self {
        let named = |verdict: &'static str| {
            let lines = outcome.output.lines();
            lines.filter_map(move |line| line.trim_start().strip_prefix(verdict)?.split(' ').next())
        };
        let all: Vec<&str> = named("--- PASS: ").chain(named("--- FAIL: ")).collect();
        let is_part =
            |name: &str, of: &str| name.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'));
        let is_whole = |test: &&str| !all.iter().any(|name| is_part(name, test));
        let count = |verdict| named(verdict).filter(is_whole).count();
        Self::counted(count("--- PASS: "), count("--- FAIL: ")).of_outcome(outcome, reasons::of_go)
    }

    /// A runner that ended badly, or ran nothing, has failed at least once.
    fn of_outcome(self, outcome: &Outcome, reasons: fn(&str) -> String) -> Self {
        let is_broken = !outcome.success || self.passed == 0;
        let failed = self.failed.max(usize::from(is_broken));
        let reasons = if failed > 0 { reasons(&outcome.output) } else { String::new() };
        Self { failed, reasons, ..self }
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            passed: sum.passed + part.passed,
            failed: sum.failed + part.failed,
            left_out: None,
            reasons: sum.reasons + &part.reasons,
        })
    }
}

fn number_before(line: &str, word: &str) -> Option<usize> {
    let (before, _) = line.split_once(word)?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn number_after(line: &str, key: &str) -> Option<usize> {
    let (_, after) = line.split_once(key)?;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests;
