//! Tests of the last line of a run.
//! In: sums → out: the line.
//! Uses the wording only; nothing is run.
//! How results are counted is tested with `tally.rs`.

use super::*;

#[test]
fn the_last_line_has_the_form_that_others_read() {
    let of = |passed, failed| sums(&Tally::counted(passed, failed));
    assert_eq!(of(7, 0), "7 passed, 0 failed");
    assert_eq!(of(7, 2), "7 passed, 2 failed");
}

#[test]
fn what_was_not_run_is_in_the_last_line() {
    let parts = [Tally::counted(7, 0), Tally::left_out("no Python 2.7"), Tally::left_out("no Go")];
    assert_eq!(sums(&parts.into_iter().sum()), "7 passed, 0 failed, 2 skipped");
}

#[test]
fn three_flaky_tests_are_let_through_and_a_fourth_has_failed() {
    for (flaky, line) in [(3, "7 passed, 0 failed"), (4, "6 passed, 1 failed")] {
        let flaky = vec!["ws a".to_owned(); flaky];
        let total = within_budget(Tally { flaky, ..Tally::counted(7, 0) });
        assert_eq!(sums(&total), line);
    }
}

#[test]
fn a_row_says_how_many_were_skipped() {
    let row = Row { name: "go", tally: Tally::left_out("no Go"), took: Duration::from_secs(1) };
    assert_eq!(row.to_string(), "go             1.0 s  0 ok, 0 failed, 1 skipped");
}
