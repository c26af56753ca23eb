//! What the suites need from the machine: Node.js, a Python environment, Go, browsers, a Redis, Debian packages.
//! In: what is installed → out: paths of programs, or an error that says what to install.
//! May install Debian packages with apt-get (as root or through sudo); never upgrades what is there.
//! A new requirement is a function here; when it is asked for is decided in `steps`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::command::{ask, must};

/// Checks that Node.js is new enough for node:test, and that npm is there; both come from Debian's packages when they are missing.
///
/// # Errors
/// Says which version was found and which is needed, or that none can be installed.
pub(crate) fn node() -> Result<()> {
    program(&["node"], "nodejs")?;
    program(&["npm"], "npm")?;
    let version = ask("node", &["--version"]).context("node --version failed")?;
    if is_older(&version, NODE_MIN) {
        bail!("Node.js {version} is too old: {NODE_MIN} or newer is needed");
    }
    println!("Node.js {version}");
    Ok(())
}

/// Whether Node.js knows an option.
pub(crate) fn node_has(option: &str) -> bool {
    ask("node", &["--help"]).is_some_and(|help| help.contains(option))
}

/// The Python of an environment in `folder`, made when it is not there yet.
///
/// # Errors
/// When there is no Python 3, or its venv module is missing and cannot be installed.
pub(crate) fn python(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    if ask(&python, &["-m", "pip", "--version"]).is_some() {
        return Ok(python);
    }
    if ask("python3", &["-c", "import ensurepip, venv"]).is_none() {
        install("python3-venv")?;
    }
    must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    Ok(python)
}

/// A Chromium or Chrome, installed from Debian's packages when there is none.
///
/// # Errors
/// When none is found and none can be installed.
pub(crate) fn chromium() -> Result<PathBuf> {
    program(CHROMIUMS, "chromium")
}

/// A Firefox, installed from Debian's packages when there is none.
///
/// # Errors
/// When none is found and none can be installed.
pub(crate) fn firefox() -> Result<PathBuf> {
    program(FIREFOXES, "firefox-esr")
}

/// The Go toolchain of the machine, installed from Debian's packages when there is none.
///
/// # Errors
/// When none is found and none can be installed.
pub(crate) fn go() -> Result<PathBuf> {
    program(&["go"], "golang-go")
}

/// Why the Go of the machine cannot build what a go.mod wants, `None` when it can.
///
/// # Errors
/// When there is no Go and none can be installed, or no version stands where one should.
pub(crate) fn go_too_old(go_mod: &str) -> Result<Option<String>> {
    let wanted = go_mod.lines().find_map(|line| line.strip_prefix("go "));
    let wanted = wanted.context("the go.mod names no version of Go")?;
    let found = ask(go()?, &["env", "GOVERSION"]).context("go env GOVERSION failed")?;
    Ok(is_older(&found, wanted).then(|| format!("needs Go {wanted}, found {found}")))
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

/// The Redis that `FANWIRE_REDIS_SERVER` names, or the one of the machine, installed from Debian's packages when there is
/// none: from the one without a service, whose program is a server when it is called so.
///
/// # Errors
/// When none is found and none can be installed.
pub(crate) fn redis() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("FANWIRE_REDIS_SERVER") {
        return Ok(chosen.into());
    }
    program(&["redis-server", "redis-check-rdb"], "redis-tools")
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
    let mut found: Vec<PathBuf> = of_pyenv.chain([PathBuf::from("python2.7")]).collect();
    found.retain(|python| ask(python, &["-c", "print(27)"]).as_deref() == Some("27"));
    found.into_iter().next()
}

/// The first of `names` on the PATH; installs `package` when there is none.
fn program(names: &[&str], package: &str) -> Result<PathBuf> {
    if find(names).is_none() {
        install(package)?;
    }
    find(names).with_context(|| format!("{package} was installed but is not on the PATH"))
}

fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let candidates =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|program| program.is_file())
}

/// Installs a Debian package; asks for fresh package lists only when the first try fails.
fn install(package: &str) -> Result<()> {
    println!("installing the Debian package {package}");
    let apt = |arguments: &[&str]| {
        let is_root = ask("id", &["-u"]).as_deref() == Some("0");
        let mut command = if is_root {
            Command::new("apt-get")
        } else {
            let mut sudo = Command::new("sudo");
            sudo.args(["--non-interactive", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
            sudo
        };
        must(command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments))
    };
    // Another apt-get may be at work, as that of a machine that updates itself.
    let wait = "DPkg::Lock::Timeout=300";
    let install = ["install", "--option", wait, "--yes", "--no-install-recommends", package];
    let by_hand = || {
        format!("install {package} by hand, or run this as root or with a sudo that asks nothing")
    };
    if apt(&install).is_err() {
        apt(&["update", "--option", wait]).with_context(by_hand)?;
        apt(&install).with_context(by_hand)?;
    }
    Ok(())
}

/// Debian 12's; the reporter of `node --test` is younger than Node.js 18 itself.
const NODE_MIN: &str = "18.15";
const CHROMIUMS: &[&str] =
    &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FIREFOXES: &[&str] = &["firefox-esr", "firefox"];

#[cfg(test)]
mod tests;
