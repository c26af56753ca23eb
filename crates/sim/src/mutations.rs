//! Faults of the past, each brought back in one program: does the simulation find them?
//! In: the patches of `crates/sim/mutations`, a CPU time for each → out: a table with the seed and the seconds that each took.
//! Uses git and cargo as programs. Never: the workspace itself, which stays as it is.
//! Changed here: how a fault is tried. What a patch does stands in its first line.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// Tries the named faults, or all, as many at a time as there are cores.
///
/// # Errors
/// When the workspace cannot be copied, or the patches do not apply.
pub(crate) fn main(seconds: u64, names: &[&str]) -> Result<ExitCode> {
    let started_at = Instant::now();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = build(&root)?;
    println!(
        "built in {:.0?}\n\n| fault | found | seeds and CPU time |\n|---|---|---|",
        started_at.elapsed()
    );
    let is_chosen = |name: &String| names.is_empty() || names.iter().any(|it| name.starts_with(it));
    let faults: Vec<String> =
        patches(&root)?.iter().skip(1).map(|patch| name_of(patch)).filter(is_chosen).collect();
    let next = AtomicUsize::new(0);
    let missed = AtomicUsize::new(0);
    let work = || {
        while let Some(name) = faults.get(next.fetch_add(1, Relaxed)) {
            let found = hunt(&program, name, seconds).unwrap_or_else(|error| format!("{error:#}"));
            println!("| {name} | {found} |");
            missed.fetch_add(usize::from(!found.contains(BROKEN)), Relaxed);
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let missed = missed.into_inner();
    println!("\n{missed} of {} were not found, in {:.0?}", faults.len(), started_at.elapsed());
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays seeds with one fault. Returns the promise that was broken, with the seeds and the CPU time that this took.
fn hunt(program: &Path, name: &str, seconds: u64) -> Result<String> {
    let number: u32 = name[..2].parse().context("a patch begins with its number")?;
    let played = Command::new(program)
        .args(["--hunt", "1", &seconds.to_string()])
        .env("FANWIRE_MUTATION", number.to_string())
        .output()?;
    let text = String::from_utf8_lossy(&played.stdout).into_owned();
    let found = text.lines().find(|line| line.contains(BROKEN));
    let took = text.lines().last().unwrap_or_default();
    Ok(match found {
        Some(found) => format!("{found} | {took}"),
        None if played.status.success() => format!("nothing | {took}"),
        None => format!("a panic {BROKEN} not to panic | "),
    })
}

/// Builds the simulation with all patches, which are off until a number is chosen.
fn build(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/mutations");
    let copy = folder.join("copy");
    copy_workspace(root, &copy)?;
    apply(&patches(root)?, &copy)?;
    let target = folder.join("target"); // cargo takes copies of one workspace for the same
    let status = Command::new("cargo")
        .args(["build", "--quiet", "--release", "-p", "fanwire-sim", "--target-dir"])
        .arg(&target)
        .current_dir(copy)
        .status()
        .context("cargo build")?;
    ensure!(status.success(), "the patches do not build");
    Ok(target.join("release/fanwire-sim"))
}

/// Applies patches as if they were one, each to what those before it made. Git must not find the repository around the copy, or it
/// would apply nothing.
fn apply(patches: &[PathBuf], copy: &Path) -> Result<()> {
    let mut apply = Command::new("git");
    apply.arg("apply").current_dir(copy).stdin(Stdio::piped());
    apply.env("GIT_CEILING_DIRECTORIES", copy.canonicalize()?.parent().context("a folder")?);
    let mut applying = apply.spawn()?;
    let mut input = applying.stdin.take().context("it is piped")?;
    for patch in patches {
        input.write_all(&fs::read(patch)?)?;
    }
    drop(input);
    ensure!(applying.wait()?.success(), "the patches do not apply");
    Ok(())
}

/// The patches in their order. The first one is the switch of the others.
fn patches(root: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(root.join("crates/sim/mutations"))?;
    let mut patches: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    patches.sort();
    Ok(patches)
}

fn name_of(patch: &Path) -> String {
    patch.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Copies the files that git knows and that have changed. The copy keeps its times, so that cargo builds little again.
fn copy_workspace(root: &Path, copy: &Path) -> Result<()> {
    let listed = Command::new("git").arg("ls-files").current_dir(root).output()?;
    let names = String::from_utf8(listed.stdout)?;
    for name in names.lines() {
        let from = root.join(name);
        let Ok(content) = fs::read(&from) else { continue };
        let to = copy.join(name);
        if fs::read(&to).is_ok_and(|there| there == content) {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::write(&to, content)?;
    }
    Ok(())
}

const BROKEN: &str = "broke the promise";
