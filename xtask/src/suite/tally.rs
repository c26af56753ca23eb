//! How many tests passed, failed and were skipped, read from what the test runners print.
//! In: the output of cargo test, node --test, unittest or go test → out: a `Tally`.
//! May read text only; a runner that failed without naming a failed test counts as one failure.
//! A new runner is a function here, in `reasons` and in `skips`; which runner a step uses is decided in `steps`.

mod reasons;
mod skips;

use crate::command::Outcome;

/// The result of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Tests that could not be run here; they count neither as passed nor as failed.
    pub(crate) skipped: usize,
    /// The reason why they were not run.
    pub(crate) not_run: Vec<String>,
    /// Tests that passed at the second try, and count as passed.
    pub(crate) flaky: Vec<String>,
    /// Lines of the runner about its failures, shown again at the end of a long run.
    pub(crate) reasons: String,
}

impl Tally {
    pub(crate) fn counted(passed: usize, failed: usize) -> Self {
        Self { passed, failed, ..Self::default() }
    }

    /// A step, or a part of one, that was not run.
    pub(crate) fn left_out(reason: impl Into<String>) -> Self {
        Self { skipped: 1, not_run: vec![reason.into()], ..Self::default() }
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

    /// Reads `Summary [1.2s] 5 tests run: 4 passed (1 flaky), 1 failed` of cargo-nextest and the names below; its report has what
    /// tests say that passed.
    pub(crate) fn of_nextest(outcome: &Outcome, report: &str) -> Self {
        let is_summary = |line: &&str| line.trim_start().starts_with("Summary [");
        let mut closing = outcome.output.lines().skip_while(|line| !is_summary(line));
        let summary = closing.next().unwrap_or_default();
        let ran = number_before(summary, " test").unwrap_or(0);
        let passed = number_before(summary, " passed").unwrap_or(0);
        let names = closing.filter_map(|line| {
            let (_, name) = line.trim_start().strip_prefix("FLAKY ")?.split_once(") ")?;
            Some(name.to_owned())
        });
        let flaky = names.collect();
        let tally = Self { flaky, ..Self::counted(passed, ran.saturating_sub(passed)) };
        tally.of_outcome(outcome, reasons::of_nextest).without_not_run(&skips::of_nextest(report))
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
        let count = |word| closing(word).unwrap_or(0);
        let failed = count("fail ") + count("cancelled ");
        let skipped = count("skipped ") + count("todo ");
        let tally = Self { skipped, ..Self::counted(count("pass "), failed) };
        tally.of_outcome(outcome, reasons::of_node).naming(skips::of_node(&outcome.output))
    }

    /// Reads `Ran 5 tests in 1.2s` and `FAILED (failures=1, errors=1)` of Python's unittest.
    pub(crate) fn of_unittest(outcome: &Outcome) -> Self {
        let line = |start: &str| outcome.output.lines().rev().find(|line| line.starts_with(start));
        let ran = line("Ran ").and_then(|line| number_before(line, " test")).unwrap_or(0);
        let verdict = line("FAILED (").or_else(|| line("OK (")).unwrap_or_default();
        let count = |key| number_after(verdict, key).unwrap_or(0);
        let failed = count("failures=") + count("errors=");
        let skipped = count("skipped=");
        let counted = Self::counted(ran.saturating_sub(failed + skipped), failed);
        let tally = Self { skipped, ..counted }.of_outcome(outcome, reasons::of_unittest);
        tally.naming(skips::of_unittest(&outcome.output))
    }

    /// Reads the `--- PASS: TestName/part (0.1s)` lines of go test -v; a test that has parts counts as its parts.
    pub(crate) fn of_go(outcome: &Outcome) -> Self {
        let named = |verdict: &'static str| {
            let lines = outcome.output.lines();
            lines.filter_map(move |line| line.trim_start().strip_prefix(verdict)?.split(' ').next())
        };
        let verdicts = ["--- PASS: ", "--- FAIL: ", "--- SKIP: "];
        let all: Vec<&str> = verdicts.into_iter().flat_map(named).collect();
        let is_part =
            |name: &str, of: &str| name.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'));
        let is_whole = |test: &&str| !all.iter().any(|name| is_part(name, test));
        let [passed, failed, skipped] =
            verdicts.map(|verdict| named(verdict).filter(is_whole).count());
        let tally = Self { skipped, ..Self::counted(passed, failed) };
        tally.of_outcome(outcome, reasons::of_go).naming(skips::of_go(&outcome.output))
    }

    /// A runner that ended badly, or ran nothing, has failed at least once.
    fn of_outcome(self, outcome: &Outcome, reasons: fn(&str) -> String) -> Self {
        let is_broken = !outcome.success || self.passed == 0;
        let failed = self.failed.max(usize::from(is_broken));
        let reasons = if failed > 0 { reasons(&outcome.output) } else { String::new() };
        Self { failed, reasons, ..self }.without_not_run(&outcome.output)
    }

    /// Names the tests that the runner skipped; those that it does not name are at least counted.
    fn naming(mut self, skipped: Vec<String>) -> Self {
        self.not_run.extend(skipped);
        if let Some(unnamed @ 1..) = self.skipped.checked_sub(self.not_run.len()) {
            self.not_run.push(format!("{unnamed} more, not named by the test runner"));
        }
        self
    }

    /// Takes out what says of itself, in a line that begins with [`NOT_RUN`], that it was not run: the runner lets it pass.
    fn without_not_run(mut self, output: &str) -> Self {
        let said: Vec<&str> =
            output.lines().filter_map(|line| line.strip_prefix(NOT_RUN)).collect();
        self.passed = self.passed.saturating_sub(said.len());
        self.skipped += said.len();
        self.not_run.extend(said.into_iter().map(str::to_owned));
        self
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            passed: sum.passed + part.passed,
            failed: sum.failed + part.failed,
            skipped: sum.skipped + part.skipped,
            flaky: [sum.flaky, part.flaky].concat(),
            not_run: [sum.not_run, part.not_run].concat(),
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

/// A test that finds that it cannot be run here prints such a line, past what its runner keeps to itself, and returns:
/// `NOT RUN: firefox: no firefox on the PATH`.
const NOT_RUN: &str = "NOT RUN: ";

#[cfg(test)]
mod tests;
