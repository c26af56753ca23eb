//! Tests of the choice of steps and of their company.
//! In: stages of made-up steps → out: which ran, in which order, with which rows.
//! Uses steps that return at once or wait for each other; never starts a program.
//! Which steps there are is decided in `suite.rs`.

use std::sync::Barrier;

use anyhow::bail;

use super::super::step;
use super::*;

const A: Step = step("a", "it passes", |_| Ok(Tally::check(true)));
const B: Step = step("b", "it fails", |_| bail!("no such file"));
const C: Step = step("c", "it passes", |_| Ok(Tally::check(true)));
static BOTH: Barrier = Barrier::new(2);
const MEETS: Step = step("meets", "it waits for another", |_| {
    BOTH.wait();
    Ok(Tally::check(true))
});

fn rows(stages: &[Stage], missing: &[tools::Missing]) -> Vec<Row> {
    let workspace = Workspace::find().expect("run inside the workspace");
    let stages = chosen(stages, |_| true);
    stages.iter().flat_map(|lanes| side_by_side(&workspace, lanes, missing)).collect()
}

fn names(rows: &[Row]) -> Vec<&'static str> {
    rows.iter().map(|row| row.name).collect()
}

#[test]
fn rows_stand_in_the_order_of_the_table_and_a_failed_step_stops_nothing() {
    let rows = rows(&[&[&[A, B], &[C]], &[&[A]]], &[]);
    assert_eq!(names(&rows), ["a", "b", "c", "a"]);
    let failed: Vec<usize> = rows.iter().map(|row| row.tally.failed).collect();
    assert_eq!(failed, [0, 1, 0, 0]);
}

#[test]
fn lanes_run_at_the_same_time() {
    assert_eq!(names(&rows(&[&[&[MEETS], &[MEETS]]], &[])), ["meets", "meets"]);
}

#[test]
fn a_step_without_its_tool_is_skipped_with_the_reason() {
    let missing = [tools::Missing::new("Go", "no network", &["c"])];
    let rows = rows(&[&[&[A], &[C]]], &missing);
    assert_eq!((rows[1].tally.passed, rows[1].tally.skipped), (0, 1));
    assert_eq!(rows[1].tally.not_run, ["needs Go: no network"]);
}

#[test]
fn lanes_without_a_chosen_step_are_left_out() {
    let stages = chosen(&[&[&[A, B], &[C]]], |step| step.name != "c");
    let names: Vec<Vec<Vec<&str>>> = stages
        .iter()
        .map(|lanes| lanes.iter().map(|lane| lane.iter().map(|step| step.name).collect()).collect())
        .collect();
    assert_eq!(names, [[["a", "b"]]]);
}
