//! The step with the published conformance suite of Durable Streams, which vitest runs.
//! In: where the workspace and its target folder are → out: packages next to the suite's lock file; passed and failed tests.
//! May run npm and Node.js; where Node.js is older than vitest needs, the step is skipped, with the reason.
//! Which groups run is changed in tests/interop/durable/run.js; the version of the suite in its package.json.

use std::process::Command;

use anyhow::Result;

use super::steps::{interop, server};
use super::tally::Tally;
use crate::command::{must, watch};
use crate::{Workspace, machine};

/// All groups but the forks.
pub(super) fn tests(workspace: &Workspace) -> Result<Tally> {
    let folder = interop(workspace).join("durable");
    if let Some(reason) = machine::node_too_old(NODE_MIN)? {
        return Ok(Tally::left_out(reason));
    }
    let mut npm = Command::new(machine::npm()?);
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    must(npm.current_dir(&folder))?;
    let mut node = Command::new(machine::node()?);
    node.arg("run.js").current_dir(folder).env("FANWIRE", server(workspace)?);
    Ok(Tally::of_node(&watch(&mut node)?))
}

/// The lowest version for vitest 4.
const NODE_MIN: &str = "20";
