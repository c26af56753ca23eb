//! Keeps cores from sleeping while something is measured: one spinner on each, which runs only when no other thread is ready.
//! In: core numbers → out: children that spin until they are dropped, or the process that started them is gone.
//! Uses `chrt` and `taskset` of util-linux, and this program once more as the spinner; never the scheduling of anything else.
//! Changed here: how a core is kept awake; which cores, and when, is the scenario's business.

use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Cores that are kept awake. Dropping it lets them sleep again.
pub struct Awake(Vec<Spinner>);

/// One child. Dropping it ends the process.
struct Spinner(Child);

impl Awake {
    /// Returns when each of the cores has its spinner, which `program` is with the subcommand [`Spin`]. To be called on a thread
    /// that lives as long as the value: the kernel ends a spinner with the thread that started it.
    ///
    /// # Errors
    /// There is no such core, no `chrt` or no `taskset`.
    pub fn keep(program: &Path, cores: &[usize]) -> Result<Self> {
        let cores = BTreeSet::from_iter(cores);
        let spinners = cores.into_iter().map(|core| Spinner::start(program, *core));
        Ok(Self(spinners.collect::<Result<_>>()?))
    }

    /// Process ids of the spinners.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|spinner| spinner.0.id())
    }
}

impl Spinner {
    fn start(program: &Path, core: usize) -> Result<Self> {
        // Both replace themselves, so that the process id is the spinner's.
        let mut command = Command::new("chrt");
        command.args(["--idle", "0", "taskset", "-c", &core.to_string()]).arg(program);
        command.args(["spin", "--parent", &std::process::id().to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context(PACKAGE)?;
        let mut spinner = Self(child);
        let stdout = spinner.0.stdout.take().context("the pipe was asked for")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(line == SPINS, "core {core} is not kept awake ({PACKAGE})");
        Ok(spinner)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Spin until killed, or until the parent is gone (--awake starts it for you).
#[derive(Args)]
pub struct Spin {
    /// The process id of who started it.
    #[arg(long)]
    parent: u32,
}

impl Spin {
    /// # Errors
    /// The parent is gone already.
    pub fn run(self) -> Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have ended before it could be followed.
        let parent = getppid().map(Pid::as_raw_nonzero).map(|id| id.get());
        ensure!(parent.is_some_and(|id| id.unsigned_abs() == self.parent), "no such parent");
        print!("{SPINS}");
        std::io::stdout().flush()?;
        loop {
            std::hint::spin_loop();
        }
    }
}

/// The line that a spinner prints once nothing keeps it from spinning.
const SPINS: &str = "spins\n";
const PACKAGE: &str = "chrt and taskset come with util-linux";
