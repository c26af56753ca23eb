//! `cargo xtask interop`: real WebSocket stacks against the server, in the mixed suite of `tests/interop`.
//! In: names of stacks and scenarios, none meaning all → out: what was installed, a line per stack and scenario, a sum.
//! May install what the chosen stacks need, as the steps of `cargo xtask test` do; goes on when that fails, and counts it.
//! Which stack needs what is the table here; what is played is decided in tests/interop/mixed.

use anyhow::Result;

use super::lanes::{self, Stage};
use super::{BUILD, CHROMIUM, FIREFOX, GO_CLIENTS, INTEROP, NPM, PIP};
use crate::Workspace;

/// Installs, builds and plays; `true` when nothing failed.
///
/// # Errors
/// When the workspace cannot be read.
pub(crate) fn main(names: &[&str]) -> Result<bool> {
    let named: Vec<String> = match names {
        [] => STACKS.iter().map(|(stack, _)| (*stack).to_owned()).collect(),
        names => names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let workspace = Workspace { stacks: named, ..Workspace::find()? };
    let needed = needs(names);
    Ok(lanes::run(&workspace, &lanes::chosen(STAGES, |step| needed.contains(&step.name))))
}

/// The steps that the named stacks need, each once; those of all stacks when only scenarios are named.
fn needs(names: &[&str]) -> Vec<&'static str> {
    let is_named = |stack: &&(&str, &[&str])| names.contains(&stack.0);
    let is_any_named = STACKS.iter().any(|stack| is_named(&stack));
    let chosen = STACKS.iter().filter(|stack| !is_any_named || is_named(stack));
    let needed: Vec<&str> = chosen.flat_map(|(_, steps)| steps.iter().copied()).collect();
    let is_needed = |name: &&str| ALWAYS.contains(name) || needed.contains(name);
    lanes::steps(STAGES).map(|step| step.name).filter(is_needed).collect()
}

const STAGES: &[Stage] = &[&[&[BUILD], &[NPM, PIP, GO_CLIENTS, CHROMIUM, FIREFOX]], &[&[INTEROP]]];

/// The server itself, what the driver is written in, and the driver.
const ALWAYS: &[&str] = &["build", "npm", "interop"];

/// The stacks as the driver names them, with the steps that only they need.
pub(super) const STACKS: &[(&str, &[&str])] = &[
    ("ws", &[]),
    ("undici", &[]),
    ("websockets", &["pip"]),
    ("aiohttp", &["pip"]),
    ("coder", &["go-clients"]),
    ("gws", &["go-clients"]),
    ("gorilla", &["go-clients"]),
    ("chromium", &["chromium"]),
    ("firefox", &["firefox"]),
];

#[cfg(test)]
mod tests;
