//! How many tests passed and failed, read from what the test runners print.
//! In: the output of cargo test, node --test, unittest or go test → out: a `Tally`.
//! May read text only; a runner that failed without naming a failed test counts as one failure.
//! A new runner is a function here; which runner a step uses is decided in `steps`.

use crate::command::Outcome;

/// The result of one step. A step that was left out says why and counts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) left_out: Option<String>,
}

impl Tally {
    pub(crate) fn counted(passed: usize, failed: usize) -> Self {
        Self { passed, failed, left_out: None }
    }

    pub(crate) fn left_out(reason: impl Into<String>) -> Self {
        Self { left_out: Some(reason.into()), ..Self::default() }
    }

    /// A check that either holds or does not.
    pub(crate) fn check(holds: bool) -> Self {
        Self::counted(usize::from(holds), usize::from(!holds))
    }

    /// Sums the `test result:` lines of cargo test.
    pub(crate) fn of_cargo(outcome: &Outcome) -> Self {
        let results = outcome.output.lines().filter(|line| line.starts_with("test result:"));
        let sum = results.map(|line| {
            let before = |word| number_before(line, word).unwrap_or(0);
            Self::counted(before(" passed"), before(" failed"))
        });
        sum.sum::<Self>().of_status(outcome.success)
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
        Self::counted(closing("pass ").unwrap_or(0), failed).of_status(outcome.success)
    }

    /// Reads `Ran 5 tests in 1.2s` and `FAILED (failures=1, errors=1)` of Python's unittest.
    pub(crate) fn of_unittest(outcome: &Outcome) -> Self {
        let line = |start: &str| outcome.output.lines().rev().find(|line| line.starts_with(start));
        let ran = line("Ran ").and_then(|line| number_before(line, " test")).unwrap_or(0);
        let verdict = line("FAILED (").unwrap_or_default();
        let failed = ["failures=", "errors="].map(|key| number_after(verdict, key).unwrap_or(0));
        let failed: usize = failed.iter().sum();
        Self::counted(ran.saturating_sub(failed), failed).of_status(outcome.success)
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
        Self::counted(count("--- PASS: "), count("--- FAIL: ")).of_status(outcome.success)
    }

    /// A runner that ended badly, or ran nothing, has failed at least once.
    fn of_status(self, success: bool) -> Self {
        let broken = !success || self.passed == 0;
        Self { failed: self.failed.max(usize::from(broken)), ..self }
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| {
            Self::counted(sum.passed + part.passed, sum.failed + part.failed)
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
