//! The test programs of the workspace, as cargo builds them.
//! In: what cargo says of its artifacts (JSON, a line each) → out: programs with their crate and folder.
//! May run `cargo test --no-run` and the programs; a program runs in the folder of its crate, as cargo runs it.
//! Which programs belong to which step is decided in `steps`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Result, bail};
use cargo_metadata::Message;

use super::tally::Tally;
use crate::House;
use crate::command::{Outcome, linted_cargo, say, watch, watch_messages};

/// A program that runs tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binary {
    /// The folder of its crate, such as `/…/crates/ws`.
    folder: PathBuf,
    /// `it`, or the name of the library or program whose unit tests it has.
    target: String,
    program: PathBuf,
}

impl Binary {
    /// Whether it has tests of this crate, of whichever kind.
    pub(super) fn is_of(&self, folder: &str) -> bool {
        self.folder.ends_with(folder)
    }

    /// Whether it is the integration tests of this crate.
    pub(super) fn is_it_of(&self, folder: &str) -> bool {
        self.target == "it" && self.folder.ends_with(folder)
    }
}

/// Builds every test, example, bench and program of the workspace, in one profile, and shows what clippy says of them.
///
/// Clippy's driver is a compiler, so that its findings take no second compilation: cargo repeats those of what is built already.
///
/// # Errors
/// When cargo cannot be started.
pub(super) fn build(house: &House) -> Result<Outcome> {
    let mut outcome = watch_messages(&mut build_command(house))?;
    if outcome.success {
        BUILT.get_or_init(|| test_programs(&outcome.output));
        outcome.add(watch_messages(build_command(house).arg("--benches"))?);
    }
    let diagnostics = diagnostics(&outcome.output);
    diagnostics.lines().for_each(say);
    Ok(Outcome { success: outcome.success && diagnostics.is_empty(), output: diagnostics })
}

fn build_command(house: &House) -> Command {
    let mut build = linted_cargo(house);
    build.args(["test", "--workspace", "--locked", "--no-run", "--message-format=json"]);
    build
}

/// Test programs of this run.
static BUILT: OnceLock<Vec<Binary>> = OnceLock::new();

/// The test programs, built when they are not.
///
/// # Errors
/// When they do not build.
pub(super) fn find(house: &House) -> Result<Vec<Binary>> {
    if BUILT.get().is_none() {
        build(house)?;
    }
    match BUILT.get() {
        Some(built) => Ok(built.clone()),
        None => bail!("the tests do not build"),
    }
}

/// The test programs among what cargo says.
fn test_programs(messages: &str) -> Vec<Binary> {
    let artifacts = parsed(messages).filter_map(|message| match message {
        Message::CompilerArtifact(artifact) if artifact.profile.test => Some(artifact),
        _ => None,
    });
    let binaries = artifacts.filter_map(|artifact| {
        let folder = artifact.manifest_path.parent()?.into();
        let program = artifact.executable?.into_std_path_buf();
        Some(Binary { folder, target: artifact.target.name, program })
    });
    binaries.collect()
}

/// Warnings and errors among what cargo says, each once, and what is no message.
fn diagnostics(messages: &str) -> String {
    let mut said = Vec::new();
    for message in parsed(messages) {
        let text = match message {
            Message::CompilerMessage(message) => message.message.rendered.unwrap_or_default(),
            Message::TextLine(line) if line.starts_with("error") => line,
            _ => continue,
        };
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said.join("\n")
}

fn parsed(messages: &str) -> impl Iterator<Item = Message> {
    Message::parse_stream(messages.as_bytes()).filter_map(Result::ok)
}

/// Runs programs one after the other and counts their tests together.
///
/// # Errors
/// When one cannot be started.
pub(super) fn run(binaries: &[Binary], prepare: impl Fn(&mut Command)) -> Result<Outcome> {
    let mut all = Outcome { success: true, output: String::new() };
    for Binary { folder, target, program } in binaries {
        say(&format!("{}: {target}", folder.display()));
        let mut command = Command::new(program);
        command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
        prepare(&mut command);
        all.add(watch(&mut command)?);
    }
    Ok(all)
}

/// Runs programs as [`run`] does, and counts their tests.
///
/// # Errors
/// When one cannot be started.
pub(super) fn count(binaries: &[Binary], prepare: impl Fn(&mut Command)) -> Result<Tally> {
    Ok(Tally::of_cargo(&run(binaries, prepare)?))
}

#[cfg(test)]
mod tests;
