//! Colyseus next to `room`: the same players, rate and state, by the programs in `bench/colyseus`.
//! In: the plan of the scenario → out: a row that Node prints.
//! Uses npm for the modules, Node for both programs. Never: measures by itself.
//! Changed here: how they are started; what they do lives in `bench/colyseus`.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

use super::Room;

/// Measures Colyseus with this plan and prints what it took. The modules are installed first.
///
/// # Errors
/// The folder is not below the current one, or npm, node or the run failed.
pub(super) fn run(plan: &Room) -> Result<()> {
    let folder = Path::new("bench/colyseus");
    ensure!(folder.is_dir(), "{} is not below the current folder", folder.display());
    if !folder.join("node_modules").is_dir() {
        run_in(folder, Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--silent"]))?;
    }
    let flags = [
        ("players", plan.players.to_string()),
        ("ticks-per-second", plan.ticks_per_second.to_string()),
        ("state-bytes", plan.state_bytes.to_string()),
        ("seconds", plan.seconds.to_string()),
        ("server-core", plan.setup.server_core.to_string()),
        ("generator-core", plan.setup.generator_core.to_string()),
    ];
    let mut node = Command::new("node");
    node.arg("run.js").args(flags.map(|(name, value)| format!("--{name}={value}")));
    println!();
    run_in(folder, &mut node)
}

fn run_in(folder: &Path, command: &mut Command) -> Result<()> {
    let program = command.get_program().to_owned();
    let ended = command.current_dir(folder).status();
    let status = ended.with_context(|| format!("{} does not start", program.display()))?;
    ensure!(status.success(), "{}: {status}", program.display());
    Ok(())
}
