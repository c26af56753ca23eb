//! Tests of the counting of test results.
//! In: closing lines as the runners print them → out: passed and failed.
//! Uses nothing but the counting; never starts a runner.
//! What the runners are called with is decided in `steps.rs`.

use super::*;

fn outcome(output: &str, success: bool) -> Outcome {
    Outcome { success, output: output.to_owned() }
}

fn counts(tally: &Tally) -> (usize, usize) {
    (tally.passed, tally.failed)
}

#[test]
fn cargo_results_are_summed_over_binaries() {
    let output = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured\n\
                  test result: FAILED. 3 passed; 1 failed; 0 ignored\n";
    assert_eq!(counts(&Tally::of_cargo(&outcome(output, false))), (15, 1));
}

#[test]
fn nextest_results_are_read_from_its_summary() {
    let output = "  TRY 1 FAIL [   0.6s] (-) ws a::b\n     Summary [   6.8s] 5 tests run: 3 passed (1 flaky), 1 failed, \
                  1 timed out, 1 skipped\n   FLAKY 2/2 [   0.0s] (1/5) ws a::b\n  TRY 2 FAIL [   0.5s] (4/5) ws c\n";
    let report =
        "<testcase name=\"d\">\n  <system-err>NOT RUN: TLS: no &lt;openssl&gt;\n</system-err>\n";
    let tally = Tally::of_nextest(&outcome(output, false), report);
    assert_eq!((counts(&tally), tally.skipped), ((2, 2), 1));
    assert_eq!(tally.flaky, ["ws a::b"]);
    assert_eq!(tally.not_run, ["TLS: no <openssl>"]);
    let nothing = Tally::of_nextest(&outcome("error: could not compile\n", false), "");
    assert_eq!(counts(&nothing), (0, 1));
}

#[test]
fn a_build_that_fails_is_one_failure() {
    assert_eq!(counts(&Tally::of_cargo(&outcome("error[E0308]\n", false))), (0, 1));
}

#[test]
fn node_results_are_read_from_either_reporter() {
    let spec = outcome("✔ a (1ms)\nℹ tests 4\nℹ pass 3\nℹ fail 1\nℹ cancelled 0\n", false);
    assert_eq!(counts(&Tally::of_node(&spec)), (3, 1));
    let tap = outcome("ok 1 - a\n# tests 3\n# pass 3\n# fail 0\n", true);
    assert_eq!(counts(&Tally::of_node(&tap)), (3, 0));
}

#[test]
fn unittest_results_are_read_from_its_verdict() {
    let good = outcome("Ran 7 tests in 0.1s\n\nOK\n", true);
    assert_eq!(counts(&Tally::of_unittest(&good)), (7, 0));
    let bad = outcome("Ran 7 tests in 0.1s\n\nFAILED (failures=1, errors=2)\n", false);
    assert_eq!(counts(&Tally::of_unittest(&bad)), (4, 3));
}

#[test]
fn go_results_are_read_from_the_innermost_tests() {
    let output = "=== RUN   TestA\n--- FAIL: TestA (0.2s)\n    --- PASS: TestA/JSON (0.1s)\n    \
                  a_test.go:7: found 1\n    --- FAIL: TestA/Protobuf (0.1s)\n\
                  --- PASS: TestAB (0.0s)\nFAIL\n";
    assert_eq!(counts(&Tally::of_go(&outcome(output, false))), (2, 1));
    assert_eq!(counts(&Tally::of_go(&outcome("x.go:1: undefined: y\n", false))), (0, 1));
}

#[test]
fn a_suite_that_runs_nothing_has_failed() {
    assert_eq!(counts(&Tally::of_node(&outcome("", true))), (0, 1));
}

#[test]
fn what_is_left_out_is_skipped_with_its_reason() {
    let parts = [Tally::check(true), Tally::left_out("no Python 2.7"), Tally::check(false)];
    check_skipped(&parts.into_iter().sum(), (1, 1), ["no Python 2.7"]);
}

#[test]
fn a_test_that_says_it_was_not_run_is_skipped_and_not_passed() {
    let output = "test a ... ok\nNOT RUN: publications over TLS: this Redis has no TLS\n\
                  test b ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored\n";
    let reason = "publications over TLS: this Redis has no TLS";
    check_skipped(&Tally::of_cargo(&outcome(output, true)), (1, 0), [reason]);
}

#[test]
fn where_every_test_says_it_was_not_run_nothing_has_failed() {
    let output = "NOT RUN: firefox: no firefox on the PATH\n# pass 1\n# fail 0\n";
    check_skipped(
        &Tally::of_node(&outcome(output, true)),
        (0, 0),
        ["firefox: no firefox on the PATH"],
    );
}

#[test]
fn what_runners_count_as_skipped_is_neither_passed_nor_failed() {
    let node = Tally::of_node(&outcome("ℹ pass 3\nℹ fail 0\nℹ skipped 1\nℹ todo 1\n", true));
    assert_eq!((counts(&node), node.skipped), ((3, 0), 2));
    assert_eq!(node.not_run, ["2 more, not named by the test runner"]);
    let python = Tally::of_unittest(&outcome("Ran 7 tests in 0.1s\n\nOK (skipped=2)\n", true));
    assert_eq!((counts(&python), python.skipped), ((5, 0), 2));
    let go = Tally::of_go(&outcome("--- PASS: TestA (0.2s)\n--- SKIP: TestB (0.0s)\n", true));
    assert_eq!((counts(&go), go.skipped), ((1, 0), 1));
    assert_eq!(go.not_run, ["TestB"]);
}

fn check_skipped(tally: &Tally, expect: (usize, usize), reasons: [&str; 1]) {
    assert_eq!(counts(tally), expect);
    assert_eq!(
        (tally.skipped, &tally.not_run[..]),
        (reasons.len(), &reasons.map(str::to_owned)[..])
    );
}

#[test]
fn only_what_failed_has_reasons() {
    let good = outcome("test result: ok. 1 passed; 0 failed\n", true);
    assert_eq!(Tally::of_cargo(&good).reasons, "");
    let bad = outcome("error[E0308]\n", false);
    assert_eq!(Tally::of_cargo(&bad).reasons, "error[E0308]");
    assert_eq!(Tally::of_program(&bad).reasons, "error[E0308]");
    let error = anyhow::anyhow!("no such file").context("cannot read go.mod");
    assert_eq!(Tally::of_error(&error).reasons, "error: cannot read go.mod: no such file");
}
