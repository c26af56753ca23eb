//! Tests of what is shown again of a failure.
//! In: output as the runners print it → out: the lines that say why.
//! Uses nothing but the cutting; never starts a runner.
//! How failures are counted is tested with `tally.rs`.

use super::*;

#[test]
fn cargo_says_why_between_failures_and_result() {
    let output = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nleft: 1\n\n\
                  failures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed\n\
                  test c ... ok\ntest result: ok. 1 passed; 0 failed\n";
    let why = "failures:\n\n---- b stdout ----\nleft: 1\n\nfailures:\n    b\n";
    assert_eq!(of_cargo(output), why);
}

#[test]
fn nextest_says_why_below_its_summary() {
    let output = "  TRY 1 FAIL [   0.6s] (-) ws a\n     Summary [   0.9s] 1 test run: 0 passed, 1 failed\n  \
                  TRY 2 FAIL [   0.5s] (1/1) ws a\n  stderr ---\n    left: 1\n";
    let why = "     Summary [   0.9s] 1 test run: 0 passed, 1 failed\n  \
               TRY 2 FAIL [   0.5s] (1/1) ws a\n  stderr ---\n    left: 1";
    assert_eq!(of_nextest(output), why);
}

#[test]
fn node_says_why_at_its_end() {
    let output =
        "✔ a (1ms)\n✖ b (1ms)\nℹ pass 1\nℹ fail 1\n\n✖ failing tests:\n\n✖ b (1ms)\n  Error: x";
    assert_eq!(of_node(output), "✖ failing tests:\n\n✖ b (1ms)\n  Error: x");
}

#[test]
fn unittest_says_why_before_it_counts() {
    let output =
        "test_a ... ok\ntest_b ... FAIL\n\n==========\nFAIL: test_b\n1 != 2\n\n----\nRan 2 tests\n";
    assert_eq!(of_unittest(output), "==========\nFAIL: test_b\n1 != 2\n\n----");
}

#[test]
fn go_says_why_under_the_name_of_the_test() {
    let output = "=== RUN   TestA\n=== RUN   TestB\n=== NAME  TestA\n    a_test.go:7: fine\n\
                  === NAME  TestB\n    a_test.go:9: 1 is not 2\n--- PASS: TestA (0.0s)\n\
                  --- FAIL: TestB (0.0s)\nFAIL\n";
    let why = "=== RUN   TestB\n=== NAME  TestB\n    a_test.go:9: 1 is not 2\n--- FAIL: TestB (0.0s)\nFAIL";
    assert_eq!(of_go(output), why);
}

#[test]
fn a_runner_that_names_no_test_gives_its_last_lines() {
    let lines: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let last = lines[100 - LAST_LINES..].join("\n");
    for said in [of_cargo, of_node, of_unittest, of_go, of_program] {
        assert_eq!(said(&lines.join("\n")), last);
    }
}

#[test]
fn a_run_that_fails_everywhere_is_cut_off() {
    let output = format!("failures:\n{}", "why\n".repeat(10 * LINES_MAX));
    assert_eq!(of_cargo(&output).lines().count(), LINES_MAX);
}
