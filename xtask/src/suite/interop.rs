//! `cargo xtask interop`: real WebSocket stacks against the release server, in the mixed suite of `tests/interop`.
//! In: names of stacks and scenarios, none meaning all → out: what was installed, a line per stack and scenario, a sum.
//! May install what the chosen stacks need, as the steps of `cargo xtask test` do; goes on when that fails, and counts it.
//! Which stack needs what is the table here; what is played is decided in tests/interop/mixed.

use anyhow::Result;

use super::tally::Tally;
use super::{Step, run, steps, summary, time};
use crate::House;

/// Installs, builds and plays; `true` when nothing failed.
///
/// # Errors
/// When the workspace cannot be read.
pub(crate) fn main(names: &[&str]) -> Result<bool> {
    let house = House::find()?;
    let mut rows: Vec<_> = needs(names).into_iter().map(|step| run(&house, step)).collect();
    let what = "every message, byte for byte";
    rows.push(time("mixed", what, || -> Result<Tally> { steps::mixed(&house, names) }));
    Ok(summary(&rows))
}

/// The steps that the named stacks need, each once; those of all stacks when only scenarios are named.
fn needs(names: &[&str]) -> Vec<&'static Step> {
    let is_named = |stack: &&(&str, &[&str])| names.contains(&stack.0);
    let is_any_named = STACKS.iter().any(|stack| is_named(&stack));
    let chosen = STACKS.iter().filter(|stack| !is_any_named || is_named(stack));
    let needed: Vec<&str> = chosen.flat_map(|(_, steps)| steps.iter().copied()).collect();
    let is_needed = |step: &&Step| ALWAYS.contains(&step.name) || needed.contains(&step.name);
    STEPS.iter().filter(is_needed).collect()
}

/// In the order in which they are done.
const STEPS: &[Step] = &[
    Step { name: "build", what: "the release binary", run: steps::build },
    Step { name: "npm", what: "npm packages from the lock file", run: steps::npm },
    Step { name: "pip", what: "Python packages from the lock file", run: steps::pip },
    Step { name: "go", what: "the Go clients, modules as in go.sum", run: steps::go_clients_built },
    Step { name: "chromium", what: "a browser", run: steps::chromium },
    Step { name: "firefox", what: "another browser", run: steps::firefox },
];

/// The server itself, and what the driver is written in.
const ALWAYS: &[&str] = &["build", "npm"];

/// The stacks as the driver names them, with the steps that only they need.
const STACKS: &[(&str, &[&str])] = &[
    ("ws", &[]),
    ("undici", &[]),
    ("websockets", &["pip"]),
    ("aiohttp", &["pip"]),
    ("coder", &["go"]),
    ("gws", &["go"]),
    ("gorilla", &["go"]),
    ("chromium", &["chromium"]),
    ("firefox", &["firefox"]),
];

#[cfg(test)]
mod tests;
