//! The steps with a certificate authority: Pebble, built from Go modules, and the tests that order certificates from it.
//! In: where the workspace and its target folder are → out: a program in the target folder; passed and failed tests.
//! May run Go, and the tests through `nextest`; without Pebble the tests are skipped, with the reason.
//! Which version of Pebble is used is changed in tests/interop/go/pebble; which tests need it, in `.config/nextest.toml`.

use std::path::PathBuf;

use anyhow::Result;

use super::nextest;
use super::steps::{go, interop};
use super::tally::Tally;
use crate::command::watch;
use crate::{Workspace, machine};

/// The program, in the versions of go.sum.
pub(super) fn pebble(workspace: &Workspace) -> Result<Tally> {
    let modules = std::fs::read_to_string(interop(workspace).join("go/pebble/go.mod"))?;
    if let Some(reason) = machine::go_too_old(&modules)? {
        return Ok(Tally::left_out(reason));
    }
    let mut build = go(workspace, "go/pebble", "build")?;
    build.arg("-o").arg(program(workspace)).arg("github.com/letsencrypt/pebble/v2/cmd/pebble");
    Ok(Tally::of_program(&watch(&mut build)?))
}

/// Each starts an authority of its own.
pub(super) fn tests(workspace: &Workspace) -> Result<Tally> {
    let program = program(workspace);
    if !program.is_file() {
        return Ok(Tally::left_out(format!(
            "no Pebble at {}: cargo xtask test pebble",
            program.display()
        )));
    }
    nextest::run(workspace, "acme", |test| {
        test.env("FANWIRE_PEBBLE", &program);
    })
}

fn program(workspace: &Workspace) -> PathBuf {
    workspace.target.join("interop/pebble")
}
