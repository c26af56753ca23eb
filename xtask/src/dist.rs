//! `cargo xtask dist`: a release for x86-64 and AArch64: tarballs, packages, licences, list of parts, checksums.
//! In: the checkout, names of architectures → out: files in the folder `packages` of the target folder.
//! May run cargo, tar, gzip and the tools of `tools`; never reads the clock: dates are those of the commit, so that two builds are equal.
//! Packages are changed in deploy/packages, the files of a tarball in `stage`, the build of the binary in `build`.

mod build;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};

use crate::Workspace;
use crate::command::{must, say};
use build::Build;

/// Builds and packs; prints what it made.
///
/// # Errors
/// When there is no such architecture, a tool cannot be had, or a program fails.
pub(crate) fn main(names: &[&str]) -> Result<bool> {
    let workspace = Workspace::find()?;
    let out = Release::build(&workspace, names)?.pack("packages")?;
    say(&format!("in {}:", out.display()));
    must(Command::new("ls").args(["-l", "."]).current_dir(&out))?;
    Ok(true)
}

/// Programs that are built.
pub(crate) struct Release<'a> {
    build: Build<'a>,
    architectures: Vec<&'static Architecture>,
    licences: PathBuf,
}

impl<'a> Release<'a> {
    /// Builds for the architectures of these names, none meaning all.
    ///
    /// # Errors
    /// As [`main`].
    pub(crate) fn build(workspace: &'a Workspace, names: &[&str]) -> Result<Self> {
        let is_chosen = |one: &&Architecture| names.is_empty() || names.contains(&one.debian);
        let architectures: Vec<_> = ARCHITECTURES.iter().filter(is_chosen).collect();
        if architectures.len() < names.len() {
            bail!("architectures are amd64 and arm64");
        }
        let build = Build::of(workspace)?;
        let licences = workspace.target.join("dist-tools/licenses.html");
        // Each file of each library is compared with all licences: minutes, in which linking uses one core.
        thread::scope(|scope| {
            let licences = scope.spawn(|| build.licences(&licences));
            // The first one is needed in any case: it prints manual and completions.
            let all = [&ARCHITECTURES[0]].into_iter().chain(architectures.iter().copied());
            all.into_iter().try_for_each(|architecture| build.binary(architecture))?;
            licences.join().expect("it does not panic")
        })?;
        Ok(Self { build, architectures, licences })
    }

    /// Makes tarballs, packages and lists in a folder of the target folder, and returns the folder.
    ///
    /// # Errors
    /// When a program fails.
    pub(crate) fn pack(&self, folder: &str) -> Result<PathBuf> {
        let out = self.build.workspace.target.join(folder);
        if out.is_dir() {
            fs::remove_dir_all(&out)?;
        }
        fs::create_dir_all(&out)?;
        let stem = format!("fanwire-{}", self.build.version);
        for architecture in &self.architectures {
            let folder = format!("{stem}-linux-{}", architecture.debian);
            self.stage(architecture, &out.join(&folder))?;
            tarball(&self.build, &out, &folder)?;
            package(&self.build, architecture, &out.join(&folder))?;
            fs::remove_dir_all(out.join(&folder))?;
        }
        self.build.parts(&out.join(format!("{stem}.cdx.json")))?;
        checksums(&out)?;
        Ok(out)
    }

    /// Gathers the files of a tarball, which are those of the packages, too.
    fn stage(&self, architecture: &Architecture, folder: &Path) -> Result<()> {
        let build = &self.build;
        fs::create_dir_all(folder)?;
        fs::copy(build.program(architecture), folder.join("fanwire"))?;
        let files = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];
        let units = ["deploy/fanwire.service", "deploy/fanwire-upgrade.service"];
        let scripts = ["after-install.sh", "before-remove.sh", "after-remove.sh", "logrotate"];
        let of_packages = scripts.map(|name| format!("deploy/packages/{name}"));
        let others = units.into_iter().chain(of_packages.iter().map(String::as_str));
        for file in files.into_iter().chain(others) {
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
        fs::copy(&self.licences, folder.join("licenses.html")).context("licences").map(drop)
    }
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

/// Packs a folder; names, owners and times are the same on every machine.
fn tarball(build: &Build<'_>, out: &Path, folder: &str) -> Result<()> {
    let name = format!("{folder}.tar");
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go-w,a+rX"]);
    tar.arg(format!("--mtime=@{}", build.date)).args(["--file", &name, "--create", folder]);
    must(tar.current_dir(out))?;
    must(Command::new("gzip").args(["-9", "-n", &name]).current_dir(out)).map(drop)
}

/// Makes the packages for Debian and RPM next to the folder.
fn package(build: &Build<'_>, of: &Architecture, folder: &Path) -> Result<()> {
    for kind in ["deb", "rpm"] {
        let mut nfpm = Command::new(&build.tools.nfpm);
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
