//! Options of `fanwire upgrade`.
//! In: arguments → out: parsed options.
//! Uses clap. Never: reads files.
//! Changed here: an option; what it does is in `upgrade`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "The server needs pid_file, or a unit with RuntimeDirectory=. docs/upgrades.md says which connections move."
)]
pub(crate) struct Upgrade {
    /// Configuration file of the server, whose pid_file says where it can be asked
    #[arg(short, long)]
    pub(crate) config: Option<PathBuf>,
    /// Process of the server; without it the server of pid_file, or of RUNTIME_DIRECTORY
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Say how many connections would move, and change nothing
    #[arg(long)]
    pub(crate) check: bool,
}
