//! The only automation of the workspace: `cargo xtask check | test | tidy | sim | dist | site | api | interop | autobahn`.
//! In: a word on the command line → out: a report on the terminal and an exit status.
//! May use std, anyhow and cargo_metadata; never a crate of ours and never a shell script.
//! A new command is one line here and one module; what the checks say lives in `tidy`, what the tests run in `suite`.
#![forbid(unsafe_code)]

mod autobahn;
mod command;
mod dist;
mod machine;
mod site;
mod suite;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["check"] => suite::check(),
        ["tidy"] => tidy::main(),
        ["dist", names @ ..] => dist::main(names),
        ["site"] => site::main(),
        ["sim", words @ ..] => sim(words),
        ["api"] => tidy::api::main(false),
        ["api", "--write"] => tidy::api::main(true),
        ["test", steps @ ..] => suite::main(steps),
        ["interop", names @ ..] => suite::interop(names),
        ["autobahn", mode @ ("quick" | "full")] => autobahn::main(mode, None),
        ["autobahn", mode @ ("quick" | "full"), url] => autobahn::main(mode, Some(url)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the simulation of a cluster (docs/simulation.md).
fn sim(words: &[&str]) -> Result<bool> {
    let mut run = std::process::Command::new("cargo");
    run.args(["run", "--quiet", "-p", "fanwire-sim"]);
    if let ["--hours" | "--speed" | "--hash" | "--classes" | "--agreement", ..] = words {
        run.arg("--release");
    }
    run.arg("--").args(words);
    Ok(run.status().context("cargo run -p fanwire-sim")?.success())
}

/// The folder of the workspace, and the folder cargo builds into.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    /// Whether tests take as long as they may, and the suites play to the server as it is packaged.
    pub(crate) at_length: bool,
    /// Stacks and scenarios of the mixed suite that were asked for by name.
    pub(crate) stacks: Vec<String>,
}

impl Workspace {
    /// Asks cargo, so that `CARGO_TARGET_DIR` and `build.target-dir` are respected.
    ///
    /// # Errors
    /// When cargo cannot read the workspace.
    pub(crate) fn find() -> Result<Self> {
        let metadata = cargo_metadata::MetadataCommand::new()
            .no_deps()
            .exec()
            .context("cargo metadata, run inside the workspace")?;
        Ok(Self {
            root: metadata.workspace_root.into_std_path_buf(),
            target: metadata.target_directory.into_std_path_buf(),
            at_length: false,
            stacks: Vec::new(),
        })
    }
}

const USAGE: &str = "\
usage: cargo xtask COMMAND

  check                      while editing: rustfmt, tidy, clippy, tests of the crates without sockets
  test [STEP …]              everything that is to hold before a change lands; names of steps
  test --all [STEP …]        the same at length, with the server as it is packaged: before a release
  interop [NAME …]           real WebSocket stacks against the server; names of stacks and scenarios
  tidy                       the rules of the workspace: arrows, cards, cycles, sizes, words, pages, locks, merges
  dist [amd64|arm64]         a release: static binaries, tarballs, packages, checksums; without a name for both
  sim --seed N               a simulated cluster, replayed by its seed; more words in docs/simulation.md
  site                       the pages of docs/ as a site, with mdBook
  api [--write]              the public interface of the library, compared with its listing; writes the listing
  autobahn quick|full [URL]  RFC 6455 and RFC 7692 against the echo example, or against a server at URL";
