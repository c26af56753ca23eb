//! Faults of the past, brought back one after another in a copy of the workspace: does the simulation find them?
//! In: the patches of `crates/sim/mutations`, a CPU time for each → out: a table with the seed and the seconds that each took.
//! Uses git and cargo as programs. Never: the workspace itself, which stays as it is.
//! Changed here: how a patch is tried. What a patch does stands in its first line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

/// Tries the named patches, or all.
///
/// # Errors
/// When the workspace cannot be copied, or a patch does not apply.
pub(crate) fn main(seconds: u64, names: &[&str]) -> Result<ExitCode> {
    let root = root();
    let copy = root.join("target/mutations/copy");
    copy_workspace(&root, &copy)?;
    let mut patches: Vec<PathBuf> = fs::read_dir(root.join("crates/sim/mutations"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    patches.sort();
    let mut tried = 0;
    let mut missed = 0;
    for patch in patches {
        let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !names.is_empty() && !names.iter().any(|wanted| name.starts_with(wanted)) {
            continue;
        }
        git_apply(&copy, &patch, &[])?;
        let hunted = hunt(&root, &copy, seconds);
        git_apply(&copy, &patch, &["-R"])?;
        let found = hunted.unwrap_or_else(|error| format!("{error:#}"));
        tried += 1;
        missed += usize::from(!found.contains("broke the promise"));
        println!("| {name} | {found} |");
    }
    let took = children_cpu_seconds()?;
    println!("{missed} of {tried} were not found, in {took:.0} s of CPU");
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the simulation in the copy and lets it play. Returns what it found, and the CPU time of the build and of the seeds.
fn hunt(root: &Path, copy: &Path, seconds: u64) -> Result<String> {
    let target = root.join("target/mutations/target"); // cargo takes copies of one workspace for the same
    let before = children_cpu_seconds()?;
    let build = Command::new("cargo")
        .args(["build", "--quiet", "-p", "fanwire-sim", "--target-dir"])
        .arg(&target)
        .args(OPTIMISED.iter().flat_map(|name| ["--config".to_owned(), opt_level_of(name)]))
        .env("CARGO_INCREMENTAL", "1")
        .current_dir(copy)
        .output()
        .context("cargo build")?;
    let errors = String::from_utf8_lossy(&build.stderr).into_owned();
    ensure!(build.status.success(), "the patch does not build:\n{errors}");
    let built = children_cpu_seconds()?;
    let program = copy.join("../mutant");
    fs::copy(target.join("debug/fanwire-sim"), &program)?;
    let played = Command::new(program).args(["--hunt", "1", &seconds.to_string()]).output()?;
    let took = format!("{:.0} s | {:.1} s", built - before, children_cpu_seconds()? - built);
    let text = String::from_utf8_lossy(&played.stdout).into_owned();
    let found = text.lines().find(|line| line.contains("broke the promise"));
    Ok(match found {
        Some(found) => format!("{found} | {took}"),
        None if played.status.success() => format!("nothing | {took}"),
        None => format!("a panic broke the promise not to panic | {took}"),
    })
}

/// CPU time of all programs that were run, as Linux counts it: in hundredths of a second.
fn children_cpu_seconds() -> Result<f64> {
    let counted = fs::read_to_string("/proc/self/stat")?;
    let fields = counted.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks = fields.skip(13).take(2).map(|field| field.parse::<f64>().unwrap_or_default());
    Ok(ticks.sum::<f64>() / 100.0)
}

/// A setting of cargo by which seeds take a third of the time, and a patch builds in some seconds more.
fn opt_level_of(name: &str) -> String {
    format!("profile.dev.package.fanwire-{name}.opt-level=1")
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

/// The crates in which a run spends its time.
const OPTIMISED: [&str; 6] = ["broker", "cluster", "node", "policy", "protocol", "sim"];
