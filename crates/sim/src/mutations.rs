//! Faults of the past, brought back one after another in a copy of the workspace: does the simulation find them?
//! In: the patches of `crates/sim/mutations`, a time for each → out: a table with the seed and the seconds that each took.
//! Uses git and cargo as programs. Never: the workspace itself, which stays as it is.
//! Changed here: how a patch is tried. What a patch does stands in its first line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// Tries the named patches, or all.
///
/// # Errors
/// When the workspace cannot be copied, or a patch neither applies nor builds.
pub(crate) fn main(seconds: u64, names: &[&str]) -> Result<ExitCode> {
    let root = root();
    let copy = root.join("target/mutations/copy");
    copy_workspace(&root, &copy)?;
    let mut patches: Vec<PathBuf> = fs::read_dir(root.join("crates/sim/mutations"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    patches.sort();
    let mut missed = 0;
    for patch in patches {
        let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !names.is_empty() && !names.iter().any(|wanted| name.starts_with(wanted)) {
            continue;
        }
        git_apply(&copy, &patch, &[])?;
        let hunted = hunt(&root, &copy, seconds);
        git_apply(&copy, &patch, &["-R"])?;
        let found = hunted?;
        missed += usize::from(!found.contains("broke the promise"));
        println!("| {name} | {found} |");
    }
    println!("{missed} were not found");
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the simulation in the copy and lets it play. Returns what it found, and after how long.
fn hunt(root: &Path, copy: &Path, seconds: u64) -> Result<String> {
    let target = root.join("target/mutations/target"); // cargo takes copies of one workspace for the same
    let build = Command::new("cargo")
        .args(["build", "--quiet", "-p", "fanwire-sim", "--target-dir"])
        .arg(&target)
        .current_dir(copy)
        .output()
        .context("cargo build")?;
    let errors = String::from_utf8_lossy(&build.stderr).into_owned();
    ensure!(build.status.success(), "the patch does not build:\n{errors}");
    let program = copy.join("../mutant");
    fs::copy(target.join("debug/fanwire-sim"), &program)?;
    let started_at = Instant::now();
    let played = Command::new(program).args(["--hunt", "1", &seconds.to_string()]).output()?;
    let took = started_at.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&played.stdout).into_owned();
    let found = text.lines().find(|line| line.contains("broke the promise"));
    Ok(match found {
        Some(found) => format!("{found} | {took:.1} s"),
        None if played.status.success() => format!("nothing in {took:.1} s | "),
        None => format!("a panic broke the promise not to panic | {took:.1} s"),
    })
}

/// Applies a patch. Git must not find the repository around the copy, or it would apply nothing.
fn git_apply(copy: &Path, patch: &Path, more: &[&str]) -> Result<()> {
    let mut apply = Command::new("git");
    apply.arg("apply").args(more).arg(patch.canonicalize()?).current_dir(copy);
    apply.env("GIT_CEILING_DIRECTORIES", copy.canonicalize()?.parent().context("a folder")?);
    let applied = apply.status()?;
    ensure!(applied.success(), "git apply {} failed", patch.display());
    Ok(())
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
