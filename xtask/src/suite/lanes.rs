//! Steps side by side: a stage is a set of lanes, a lane is a row of steps, and stages follow each other.
//! In: stages → out: every step run once, a row for each in the order of the tables, and the summary.
//! May start threads; a step that fails stops nothing, one whose tool is missing is skipped.
//! Changed here: how many lanes run at once; which steps share a lane is decided in `suite`.

use std::sync::Mutex;
use std::time::Instant;

use super::summary::{self, Row};
use super::tally::Tally;
use super::{Step, tools};
use crate::Workspace;
use crate::command::{prefixed, say};

/// Lanes that may run at the same time.
pub(super) type Stage = &'static [&'static [Step]];

/// Every step of these stages, in order.
pub(super) fn steps(stages: &[Stage]) -> impl Iterator<Item = &'static Step> {
    stages.iter().flat_map(|stage| stage.iter()).flat_map(|lane| lane.iter())
}

/// The steps of `stages` that are chosen, in their stages and lanes.
pub(super) fn chosen(stages: &[Stage], is_chosen: impl Fn(&Step) -> bool) -> Vec<Lanes> {
    let steps = |lane: &&[Step]| -> Vec<Step> {
        lane.iter().filter(|step| is_chosen(step)).copied().collect()
    };
    let lanes = |stage: &Stage| stage.iter().map(steps).filter(|lane| !lane.is_empty()).collect();
    stages.iter().map(lanes).collect()
}

/// The lanes of a stage.
pub(super) type Lanes = Vec<Vec<Step>>;

/// Installs what is missing, runs the stages and prints the summary; `true` when nothing failed.
pub(super) fn run(workspace: &Workspace, stages: &[Lanes]) -> bool {
    let steps: Vec<&Step> = stages.iter().flatten().flatten().collect();
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    let missing = tools::install(&names);
    let rows: Vec<Row> =
        stages.iter().flat_map(|lanes| side_by_side(workspace, lanes, &missing)).collect();
    summary::print(&rows)
}

/// Runs lanes, at most [`AT_ONCE`] at a time; the next one begins when another ends.
fn side_by_side(
    workspace: &Workspace,
    lanes: &[Vec<Step>],
    missing: &[tools::Missing],
) -> Vec<Row> {
    let threads = AT_ONCE.min(lanes.len());
    let queue = Mutex::new(lanes.iter().enumerate());
    let rows = Mutex::new(Vec::new());
    let next = || queue.lock().expect("no holder panics").next();
    let run = |(number, lane): (usize, &Vec<Step>)| {
        for step in lane {
            let row = run_one(workspace, step, missing, lanes.len() > 1);
            rows.lock().expect("no holder panics").push((number, row));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(lane) = next() {
                    run(lane);
                }
            });
        }
    });
    let mut rows = rows.into_inner().expect("the lanes have ended");
    rows.sort_by_key(|(number, _)| *number);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Runs a step under a header; an error counts as one failure. In company each line begins with the name of its step.
fn run_one(
    workspace: &Workspace,
    step: &Step,
    missing: &[tools::Missing],
    in_company: bool,
) -> Row {
    prefixed(if in_company { step.name } else { "" }, || {
        say(&format!("=== {}: {}", step.name, step.what));
        let started = Instant::now();
        let tally = match missing.iter().find(|tool| tool.steps.contains(&step.name)) {
            Some(tool) => Tally::left_out(tool.to_string()),
            None => (step.run)(workspace).unwrap_or_else(|error| {
                say(&format!("error: {error:#}"));
                Tally::of_error(&error)
            }),
        };
        let row = Row { name: step.name, tally, took: started.elapsed() };
        say(&format!("--- {row}"));
        row
    })
}

/// Two cores are busy with two; a third uses what the others leave while they wait.
const AT_ONCE: usize = 3;

#[cfg(test)]
mod tests;
