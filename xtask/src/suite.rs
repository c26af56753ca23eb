//! `cargo xtask test`: every check and every suite, in order, on a machine that has Rust, Node.js, npm and Python 3.
//! In: names of steps, none meaning all → out: a header and a time per step, what failed, a table, and `N passed, N failed`.
//! May run cargo, npm, pip and apt-get; goes on after a failed step, so that one run shows everything.
//! The order is the table here; what a step does stands in `steps`, what it needs from the machine in `machine`.

mod interop;
mod machine;
mod steps;
mod tally;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::House;
pub(crate) use interop::main as interop;
pub(crate) use machine::{python, python_2_7};
use tally::Tally;

/// Runs the named steps, or all of them; `true` when nothing failed.
///
/// # Errors
/// When a name is unknown or the workspace cannot be read.
pub(crate) fn main(names: &[&str]) -> Result<bool> {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("no step is called {unknown}; the steps are: {}", known.join(" "));
    }
    let house = House::find()?;
    let chosen = STEPS.iter().filter(|step| names.is_empty() || names.contains(&step.name));
    let rows: Vec<Row> = chosen.map(|step| run(&house, step)).collect();
    Ok(summary(&rows))
}

/// Prints why what failed did, the rows and their sum; `true` when nothing failed.
///
/// The reasons stand above already; at the end they are found, also where only the end of the output is kept.
fn summary(rows: &[Row]) -> bool {
    for row in rows.iter().filter(|row| !row.tally.reasons.is_empty()) {
        println!("\n=== {}: what failed\n{}", row.name, row.tally.reasons);
    }
    let total: Tally = rows.iter().map(|row| row.tally.clone()).sum();
    println!("\n=== summary");
    for row in rows {
        println!("{row}");
    }
    let left_out = rows.iter().filter(|row| row.tally.left_out.is_some()).count();
    print!("{} passed, {} failed", total.passed, total.failed);
    println!("{}", if left_out > 0 { format!(", {left_out} skipped") } else { String::new() });
    total.failed == 0
}

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&House) -> Result<Tally>,
}

/// The order of a whole run: cheap checks first, then what needs the release binary.
const STEPS: &[Step] = &[
    Step { name: "fmt", what: "rustfmt changes nothing", run: steps::fmt },
    Step { name: "tidy", what: "the rules of the house", run: steps::tidy },
    Step { name: "clippy", what: "no warning in any target", run: steps::clippy },
    Step { name: "unit", what: "cargo test of the whole workspace", run: steps::unit },
    Step { name: "build", what: "the release binary, and the example `deltas`", run: steps::build },
    Step { name: "npm", what: "npm packages from the lock file", run: steps::npm },
    Step { name: "pip", what: "Python packages from the lock file", run: steps::pip },
    Step { name: "chromium", what: "a browser", run: steps::chromium },
    Step {
        name: "js",
        what: "npm centrifuge and ws against the server, fossil-delta against ours",
        run: steps::js,
    },
    Step {
        name: "python",
        what: "PyPI centrifuge-python, cent, websockets and prometheus-client",
        run: steps::python,
    },
    Step { name: "go", what: "Go centrifuge-go and gocent", run: steps::go_sdk },
    Step {
        name: "go-next",
        what: "a newer Go centrifuge-go, with deltas, where Go is new enough",
        run: steps::go_sdk_next,
    },
    Step {
        name: "oracle",
        what: "the same commands to the centrifuge Go library, where Go is new enough",
        run: steps::oracle,
    },
    Step { name: "browser", what: "the demo page in Chromium", run: steps::browser },
    Step {
        name: "interop",
        what: "real WebSocket stacks, quickly; all by cargo xtask interop",
        run: steps::quick_mixed,
    },
    Step { name: "autobahn", what: "the quick groups of Autobahn", run: steps::autobahn },
    Step { name: "churn", what: "300 clients come and go for 5 s", run: steps::churn },
    Step { name: "corpus", what: "real messages to 1,000 subscribers", run: steps::corpus },
];

fn run(house: &House, step: &'static Step) -> Row {
    time(step.name, step.what, || (step.run)(house))
}

/// Does one piece of work under a header; an error counts as one failure.
fn time(name: &'static str, what: &str, work: impl FnOnce() -> Result<Tally>) -> Row {
    println!("\n=== {name}: {what}");
    let started = Instant::now();
    let tally = work().unwrap_or_else(|error| {
        println!("error: {error:#}");
        Tally::of_error(&error)
    });
    let row = Row { name, tally, took: started.elapsed() };
    println!("--- {row}");
    row
}

struct Row {
    name: &'static str,
    tally: Tally,
    took: Duration,
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.took.as_secs_f64();
        write!(f, "{:<10} {:>7.1} s  ", self.name, seconds)?;
        match &self.tally.left_out {
            Some(reason) => write!(f, "left out: {reason}"),
            None => write!(f, "{} ok, {} failed", self.tally.passed, self.tally.failed),
        }
    }
}
