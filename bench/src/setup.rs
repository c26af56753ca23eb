//! What is measured, and where: flags that the scenarios have in common.
//! In: the command line → out: the server's binary and the cores of both sides.
//! Uses `target` to find the binary and `machine` to stay on a core.
//! Changed here: the arguments of every scenario; arguments of one alone live there.

use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

use crate::target::fanwire_binary;
use fanwire_load::machine;

#[derive(Args, Clone)]
pub struct Setup {
    /// The fanwire binary; by default the one built with this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    #[arg(long, default_value_t = 0)]
    pub server_core: usize,
    /// For the process that loads the server, and for a Redis, which works while the others wait.
    #[arg(long, default_value_t = 1)]
    pub generator_core: usize,
}

impl Setup {
    /// The binary named, or the one built with this program.
    ///
    /// # Errors
    /// There is none.
    pub fn binary(&self) -> Result<PathBuf> {
        fanwire_binary(self.server.clone())
    }

    /// Keeps this thread, and those it starts, on the generator's core.
    ///
    /// # Errors
    /// There is no such core.
    pub fn pin_generator(&self) -> Result<()> {
        machine::pin(self.generator_core)
    }
}
