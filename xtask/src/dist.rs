//! `cargo xtask dist`: a release for x86-64 and AArch64: tarballs, packages, licences, list of parts, checksums.
//! In: the checkout, names of architectures → out: files in the folder `packages` of the target folder.
//! May run cargo, tar, gzip and the tools of `tools`; never reads the clock: dates are those of the commit, so that two builds are equal.
//! Packages are changed in deploy/packages, the files of a tarball in `stage`, the build of the binary in `build`.

mod build;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::House;
use crate::command::{must, say};
use build::Build;
use tools::Tools;

/// Builds and packs; prints what it made.
///
/// # Errors
/// When there is no such architecture, a tool cannot be had, or a program fails.
pub(crate) fn main(names: &[&str]) -> Result<bool> {
    let out = make(&House::find()?, names)?;
    say(&format!("in {}:", out.display()));
    must(Command::new("ls").args(["-l", "."]).current_dir(&out))?;
    Ok(true)
}

/// Builds and packs for the architectures of these names, none meaning all, and returns the folder of the files.
///
/// # Errors
/// As [`main`].
pub(crate) fn make(house: &House, names: &[&str]) -> Result<PathBuf> {
    let chosen =
        || ARCHITECTURES.iter().filter(|one| names.is_empty() || names.contains(&one.debian));
    if chosen().count() < names.len() {
        bail!("architectures are amd64 and arm64");
    }
    let tools = Tools::install(house)?;
    let build = Build::of(house, &tools)?;
    let out = house.target.join("packages");
    if out.is_dir() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    // The first one is needed in any case: it prints manual and completions.
    build.binary(&ARCHITECTURES[0])?;
    let stem = format!("fanwire-{}", build.version);
    for architecture in chosen() {
        build.binary(architecture)?;
        let folder = format!("{stem}-linux-{}", architecture.debian);
        stage(&build, architecture, &out.join(&folder))?;
        tarball(&build, &out, &folder)?;
        package(&build, &tools, architecture, &out.join(&folder))?;
        fs::remove_dir_all(out.join(&folder))?;
    }
    build.parts(&out.join(format!("{stem}.cdx.json")))?;
    checksums(&out)?;
    Ok(out)
}

/// A kind of machine, by its names.
#[derive(Debug)]
struct Architecture {
    target: &'static str,
    debian: &'static str,
}

/// The first is that of the machine that builds: its binary prints manual and completions.
const ARCHITECTURES: [Architecture; 2] = [
    Architecture { target: "x86_64-unknown-linux-musl", debian: "amd64" },
    Architecture { target: "aarch64-unknown-linux-musl", debian: "arm64" },
];

/// Gathers the files of a tarball, which are those of the packages, too.
fn stage(build: &Build, architecture: &Architecture, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::copy(build.program(architecture), folder.join("fanwire"))?;
    let files = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "deploy/fanwire.service"];
    let of_packages = ["after-install.sh", "before-remove.sh", "after-remove.sh", "logrotate"];
    let of_packages = of_packages.map(|name| format!("deploy/packages/{name}"));
    for file in files.into_iter().chain(of_packages.iter().map(String::as_str)) {
        let name = Path::new(file).file_name().context("a name")?;
        fs::copy(build.root.join(file), folder.join(name)).with_context(|| file.to_owned())?;
    }
    let here = build.program(&ARCHITECTURES[0]);
    for (words, name) in [
        (&["man"][..], "fanwire.1"),
        (&["completions", "bash"], "fanwire.bash"),
        (&["completions", "zsh"], "_fanwire"),
        (&["completions", "fish"], "fanwire.fish"),
    ] {
        let text = Command::new(&here).args(words).output()?.stdout;
        fs::write(folder.join(name), text)?;
    }
    must(Command::new("gzip").args(["-9", "-n", "fanwire.1"]).current_dir(folder))?;
    build.licences(&folder.join("licenses.html"))
}

/// Packs a folder; names, owners and times are the same on every machine.
fn tarball(build: &Build, out: &Path, folder: &str) -> Result<()> {
    let name = format!("{folder}.tar");
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go-w,a+r"]);
    tar.arg(format!("--mtime=@{}", build.date)).args(["--file", &name, "--create", folder]);
    must(tar.current_dir(out))?;
    must(Command::new("gzip").args(["-9", "-n", &name]).current_dir(out)).map(drop)
}

/// Makes the packages for Debian and RPM next to the folder.
fn package(build: &Build, tools: &Tools, of: &Architecture, folder: &Path) -> Result<()> {
    for kind in ["deb", "rpm"] {
        let mut nfpm = Command::new(&tools.nfpm);
        nfpm.args(["package", "--packager", kind, "--target", "..", "--config"]);
        nfpm.arg(build.root.join("deploy/packages/nfpm.yaml")).current_dir(folder);
        nfpm.env("FANWIRE_ARCH", of.debian).env("FANWIRE_VERSION", &build.version);
        nfpm.env("SOURCE_DATE_EPOCH", &build.date);
        must(&mut nfpm)?;
    }
    Ok(())
}

/// Writes SHA256SUMS, as `sha256sum --check` reads it.
fn checksums(out: &Path) -> Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(out)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let sums = Command::new("sha256sum").args(&names).current_dir(out).output()?.stdout;
    fs::write(out.join("SHA256SUMS"), sums).context("SHA256SUMS")
}
