//! Tests of the names and reasons of skipped tests.
//! In: lines as the runners print them → out: a text for each skipped test.
//! Uses the reading only; never starts a runner.
//! How skipped tests are counted is tested in `tally`.

use super::*;

#[test]
fn node_names_them_at_any_depth_and_in_either_reporter() {
    let spec = "▶ one\n  ﹣ in (1.69ms) # why not\n✔ one (16.4ms)\n\
                ﹣ firefox: EventSource (all) (0.3ms) # no firefox on the PATH\n﹣ three (0.2ms) # SKIP\n";
    let expect = ["in: why not", "firefox: EventSource (all): no firefox on the PATH", "three"];
    assert_eq!(of_node(spec), expect);
    assert_eq!(of_node("ok 1 - a\nok 2 - b - c # SKIP no d\n"), ["b - c: no d"]);
}

#[test]
fn unittest_names_them_in_its_verbose_lines() {
    let output =
        "test_a (t.A.test_a) ... ok\ntest_b (t.A.test_b) ... skipped 'no Redis'\nOK (skipped=1)\n";
    assert_eq!(of_unittest(output), ["test_b (t.A.test_b): no Redis"]);
}

#[test]
fn go_gives_the_reason_of_the_test_that_was_skipped_and_not_of_its_neighbour() {
    let output = "=== RUN   TestA\n=== RUN   TestB\n    b_test.go:7: needs deltas\n=== CONT  TestA\n    \
                  a_test.go:9: 3 of 4\n--- SKIP: TestB (0.0s)\n--- PASS: TestA (0.0s)\n--- SKIP: TestC (0.0s)\n";
    assert_eq!(of_go(output), ["TestB: needs deltas", "TestC"]);
}
