//! Programs of the machine that the suites need: Node.js, a Python environment, Go, browsers, a Redis, Debian packages.
//! In: what is installed → out: paths of programs, or an error that says what is missing.
//! May install Debian packages with apt-get (as root or through sudo) when `tools` asks; never upgrades what is there.
//! Changed here: how a program is found; what is needed for which step is the table in `suite::tools`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{ask, must};

/// A Node.js that is new enough for node:test.
///
/// # Errors
/// When there is none, or says which version was found and which is needed.
pub(crate) fn node() -> Result<PathBuf> {
    let node = program(&["node"])?;
    let version = ask(&node, &["--version"]).context("node --version failed")?;
    if is_older(&version, NODE_MIN) {
        bail!("Node.js {version} is too old: {NODE_MIN} or newer is needed");
    }
    Ok(node)
}

/// The package manager of Node.js.
///
/// # Errors
/// When there is none.
pub(crate) fn npm() -> Result<PathBuf> {
    program(&["npm"])
}

/// The complaint that Node.js is older than `wanted`, for a suite that needs more than the others; `None` when it is not.
///
/// # Errors
/// When there is none.
pub(crate) fn node_too_old(wanted: &str) -> Result<Option<String>> {
    let installed = ask(node()?, &["--version"]).context("node --version failed")?;
    Ok(is_older(&installed, wanted).then(|| format!("needs Node.js {wanted}, found {installed}")))
}

/// Whether Node.js knows an option.
pub(crate) fn node_has(option: &str) -> bool {
    ask("node", &["--help"]).is_some_and(|help| help.contains(option))
}

/// The Python of an environment in `folder`, made when it is not there yet.
///
/// # Errors
/// When there is no Python 3, or its venv module is missing.
pub(crate) fn python(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    if ask(&python, &["-m", "pip", "--version"]).is_some() {
        return Ok(python);
    }
    must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    Ok(python)
}

/// A Chromium or Chrome.
///
/// # Errors
/// When there is none.
pub(crate) fn chromium() -> Result<PathBuf> {
    program(CHROMIUMS)
}

/// A Firefox.
///
/// # Errors
/// When there is none.
pub(crate) fn firefox() -> Result<PathBuf> {
    program(FIREFOXES)
}

/// The Go toolchain of the machine.
///
/// # Errors
/// When there is none.
pub(crate) fn go() -> Result<PathBuf> {
    program(&["go"])
}

/// The reason why the Go of the machine cannot build what a go.mod wants, `None` when it can.
///
/// # Errors
/// When there is no Go, or no version stands where one should.
pub(crate) fn go_too_old(go_mod: &str) -> Result<Option<String>> {
    let named = go_mod.lines().find_map(|line| line.strip_prefix("go "));
    let wanted = named.context("the go.mod names no version of Go")?;
    let installed = ask(go()?, &["env", "GOVERSION"]).context("go env GOVERSION failed")?;
    Ok(is_older(&installed, wanted).then(|| format!("needs Go {wanted}, found {installed}")))
}

/// Compares versions as they are written: `v18.20.4`, `go1.22`; what is missing is 0.
fn is_older(found: &str, wanted: &str) -> bool {
    let numbers = |version: &str| -> Vec<u32> {
        let version = version.trim_start_matches(|c: char| !c.is_ascii_digit());
        let parts = version.split(|c: char| !c.is_ascii_digit());
        let mut numbers: Vec<u32> = parts.map_while(|part| part.parse().ok()).take(3).collect();
        numbers.resize(3, 0);
        numbers
    };
    numbers(found) < numbers(wanted)
}

/// The Redis that `FANWIRE_REDIS_SERVER` names, or the one of the machine. Debian's package redis-tools brings no
/// service along; its program is a server when it is called so.
///
/// # Errors
/// When there is none.
pub(crate) fn redis() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("FANWIRE_REDIS_SERVER") {
        return Ok(chosen.into());
    }
    program(&["redis-server", "redis-check-rdb"])
}

/// The program of PostgreSQL, which Debian keeps in a folder for each version.
///
/// # Errors
/// When there is none.
pub(crate) fn postgres() -> Result<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut programs = versions.map(|version| version.path().join("bin/postgres"));
    programs.find(|program| program.is_file()).map_or_else(|| program(&["postgres"]), Ok)
}

/// The pool of connections to PostgreSQL.
///
/// # Errors
/// When there is none.
pub(crate) fn pgbouncer() -> Result<PathBuf> {
    program(&["pgbouncer"])
}

/// A server that Debian keeps outside the PATH of users.
///
/// # Errors
/// When it is not there.
pub(crate) fn service(name: &str) -> Result<()> {
    let is_there = Path::new("/usr/sbin").join(name).is_file();
    is_there.then_some(()).with_context(|| format!("no /usr/sbin/{name}"))
}

/// A Python 2.7 that runs, for the Autobahn TestSuite.
pub(crate) fn python_2_7() -> Option<PathBuf> {
    let versions = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv")))
        .and_then(|root| std::fs::read_dir(root.join("versions")).ok());
    let of_pyenv = versions
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("2.7"))
        .map(|entry| entry.path().join("bin/python2.7"));
    let mut pythons: Vec<PathBuf> = of_pyenv.chain([PathBuf::from("python2.7")]).collect();
    pythons.retain(|python| ask(python, &["-c", "print(27)"]).as_deref() == Some("27"));
    pythons.into_iter().next()
}

/// The first of `names` on the PATH.
///
/// # Errors
/// When there is none.
pub(crate) fn program(names: &[&str]) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut candidates =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let program = candidates.find(|program| program.is_file());
    program.with_context(|| format!("no {} on the PATH", names.join(" or ")))
}

/// Installs Debian packages in one go; asks for fresh package lists only when the first try fails.
///
/// # Errors
/// When apt-get fails, or may not be run.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    // Another apt-get may be at work, as that of a machine that updates itself.
    let wait = "DPkg::Lock::Timeout=300";
    let mut install = vec!["install", "--option", wait, "--yes", "--no-install-recommends"];
    install.extend(packages);
    if apt(&install).is_err() {
        let by_hand = || {
            let packages = packages.join(" ");
            format!(
                "install {packages} by hand, or run this as root or with a sudo that asks nothing"
            )
        };
        apt(&["update", "--option", wait]).with_context(by_hand)?;
        apt(&install).with_context(by_hand)?;
    }
    Ok(())
}

fn apt(arguments: &[&str]) -> Result<String> {
    let is_root = ask("id", &["-u"]).as_deref() == Some("0");
    let mut command = if is_root {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["--non-interactive", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        sudo
    };
    must(command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments))
}

/// Debian 12's; the reporter of `node --test` is younger than Node.js 18 itself.
const NODE_MIN: &str = "18.15";
const CHROMIUMS: &[&str] =
    &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FIREFOXES: &[&str] = &["firefox-esr", "firefox"];

#[cfg(test)]
mod tests;
