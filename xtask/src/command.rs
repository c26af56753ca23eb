//! Runs other programs: shows what they print while they run and keeps it for counting.
//! In: program, arguments, folder, environment → out: the exit status and everything that was printed.
//! May use std::process; never a shell, so nothing needs quoting.
//! Changed here: how a program is started, watched and ended; which programs run is decided in `suite` and `autobahn`.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::Workspace;

thread_local! {
    /// Text before each line that this thread and the programs that it watches print.
    static PREFIX: Cell<&'static str> = const { Cell::new("") };
}

/// Does `work` in such a way that what it prints begins each line with `name`; without a name, as it is.
///
/// It distinguishes programs that run side by side. Holds for [`say`] and what [`watch`] shows, on this thread.
pub(crate) fn prefixed<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let before = PREFIX.replace(name);
    let done = work();
    PREFIX.set(before);
    done
}

/// Prints a line.
pub(crate) fn say(line: &str) {
    println!("{}{line}", prefix());
}

fn prefix() -> String {
    match PREFIX.get() {
        "" => String::new(),
        name => format!("{name:<10} | "),
    }
}

/// Output of a program (stdout and stderr, line by line as they came) and whether it ended with status 0.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) success: bool,
    pub(crate) output: String,
}

impl Outcome {
    /// The outcome of both, one after the other.
    pub(crate) fn add(&mut self, next: Self) {
        self.success &= next.success;
        self.output.push_str(&next.output);
    }
}

/// Runs `command` to its end, shows its output as it comes and returns it.
///
/// # Errors
/// When the program cannot be started; a failing program is an [`Outcome`].
pub(crate) fn watch(command: &mut Command) -> Result<Outcome> {
    run(command, Some(std::io::stdout()))
}

/// Runs a program as [`watch`] does, but its stdout is for the caller and is not shown.
///
/// # Errors
/// When the program cannot be started; a failing program is an [`Outcome`].
pub(crate) fn watch_messages(command: &mut Command) -> Result<Outcome> {
    run(command, None)
}

fn run(command: &mut Command, shown: Option<std::io::Stdout>) -> Result<Outcome> {
    let name = name_of(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let kept = Arc::new(Mutex::new(String::new()));
    let out = child.stdout.take().context("stdout was piped")?;
    let err = child.stderr.take().context("stderr was piped")?;
    let copies = [copy(out, shown, kept.clone()), copy(err, Some(std::io::stderr()), kept.clone())];
    for copy in copies {
        let _ = copy.join();
    }
    let success = child.wait()?.success();
    let output = std::mem::take(&mut *kept.lock().expect("the copying threads have ended"));
    Ok(Outcome { success, output })
}

/// Runs `command` to its end and fails when it fails.
///
/// # Errors
/// Names the program when it cannot be started or ends with another status than 0.
pub(crate) fn must(command: &mut Command) -> Result<String> {
    let name = name_of(command);
    let outcome = watch(command)?;
    if !outcome.success {
        bail!("{name} failed");
    }
    Ok(outcome.output)
}

/// The cargo that runs this, in the workspace.
pub(crate) fn cargo(workspace: &Workspace) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&workspace.root);
    cargo
}

/// Cargo with clippy's driver for the crates of the workspace. What it builds is built again without: a run uses one of them.
pub(crate) fn linted_cargo(workspace: &Workspace) -> Command {
    let mut cargo = cargo(workspace);
    linted(&mut cargo);
    cargo
}

/// Makes a program that calls cargo build as [`linted_cargo`] does.
///
/// Incremental compilation takes a third more time where everything is compiled, as in CI.
pub(crate) fn linted(command: &mut Command) -> &mut Command {
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CARGO_INCREMENTAL", "0")
}

/// The trimmed stdout of a short program, `None` when it is missing or fails.
pub(crate) fn ask(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let result =
        Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = result.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A server of ours that is ended, by its own process id, when this value goes away.
pub(crate) struct Server(Child);

impl Server {
    /// Starts `program` and waits until it has printed a line that `ready` accepts; later output is dropped.
    ///
    /// # Errors
    /// When the program is missing or ends before it is ready.
    pub(crate) fn start<T>(
        program: &Path,
        arguments: &[&str],
        mut ready: impl FnMut(&str) -> Option<T>,
    ) -> Result<(Self, T)> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut lines = BufReader::new(child.stdout.take().context("stdout was piped")?).lines();
        let server = Self(child);
        while let Some(line) = lines.next().transpose()? {
            if let Some(value) = ready(&line) {
                thread::spawn(move || lines.for_each(drop));
                return Ok((server, value));
            }
        }
        bail!("{} ended before it was ready", program.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn copy(
    from: impl Read + Send + 'static,
    mut to: Option<impl Write + Send + 'static>,
    kept: Arc<Mutex<String>>,
) -> thread::JoinHandle<()> {
    let prefix = prefix();
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while matches!(from.read_until(b'\n', &mut line), Ok(1..)) {
            if let Some(to) = &mut to {
                let _ = to.write_all(&[prefix.as_bytes(), &line].concat());
                let _ = to.flush();
            }
            kept.lock().expect("no holder panics").push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    })
}

fn name_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
