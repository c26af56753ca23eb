//! Rust tests through cargo-nextest: a process, a time limit and at most one retry for each test.
//! In: a profile of `.config/nextest.toml`, further arguments → out: passed, failed, flaky and skipped tests.
//! May install the runner from PyPI into the target folder, by its hash. It builds what `binaries` has built, so nothing.
//! Changed here: how the runner is called. Which tests a profile has, and their limits, is changed in `.config/nextest.toml`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use super::tally::Tally;
use crate::command::{ask, linted, must, watch};
use crate::{Workspace, machine};

/// Runs the tests of a profile.
///
/// # Errors
/// When the runner cannot be installed or started.
pub(super) fn run(
    workspace: &Workspace,
    profile: &str,
    prepare: impl FnOnce(&mut Command),
) -> Result<Tally> {
    let report = workspace.target.join("nextest").join(profile).join("junit.xml");
    let _ = std::fs::remove_file(&report); // of the run before
    let mut nextest = Command::new(install(workspace)?);
    nextest.args(["nextest", "run", "--workspace", "--locked", "--profile", profile]);
    prepare(linted(nextest.current_dir(&workspace.root)));
    let outcome = watch(&mut nextest)?;
    let report = std::fs::read_to_string(report).unwrap_or_default();
    Ok(Tally::of_nextest(&outcome, &report))
}

/// The runner, in the version of `xtask/requirements.txt`, installed when it is not there.
fn install(workspace: &Workspace) -> Result<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let requirements = workspace.root.join("xtask/requirements.txt");
    let environment = workspace.target.join("nextest/venv");
    let program = environment.join("bin/cargo-nextest");
    let version = ask(&program, &["nextest", "--version"]).unwrap_or_default();
    let wanted = std::fs::read_to_string(&requirements)?;
    let is_wanted = |version: &str| wanted.contains(&format!("=={version} "));
    if version.split_whitespace().nth(1).is_some_and(is_wanted) {
        return Ok(program);
    }
    let mut pip = Command::new(machine::python(&environment)?);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--require-hashes", "--only-binary", ":all:", "-r"]).arg(requirements);
    must(&mut pip)?;
    Ok(program)
}
