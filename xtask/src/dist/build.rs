//! The binary of a release, and what is said about it: licences, list of parts.
//! In: the checkout, a target → out: a static program; an HTML page; a CycloneDX document.
//! May run git and cargo; never lets a path of this machine into the program, which would differ on the next one.
//! Changed here: how a release is compiled; the profile is `dist` in Cargo.toml.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::tools::Tools;
use super::{ARCHITECTURES, Architecture};
use crate::Workspace;
use crate::command::{ask, cargo, must};

/// The checkout that is built, and how.
pub(super) struct Build<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) tools: Tools,
    pub(super) root: &'a Path,
    pub(super) version: String,
    /// Time of the commit, in seconds since 1970.
    pub(super) date: String,
}

impl<'a> Build<'a> {
    /// # Errors
    /// When cargo or git do not know the checkout, or a tool cannot be had.
    pub(super) fn of(workspace: &'a Workspace) -> Result<Self> {
        let tools = Tools::install(workspace)?;
        let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
        let program = metadata.packages.iter().find(|package| package.name == "fanwire-cli");
        let version = program.context("no package fanwire-cli")?.version.to_string();
        let root = workspace.root.to_string_lossy().into_owned();
        let date = ask("git", &["-C", &root, "log", "-1", "--format=%ct"])
            .context("git log: a release is made from a checkout")?;
        Ok(Self { workspace, tools, root: &workspace.root, version, date })
    }

    /// Builds the program for an architecture.
    ///
    /// # Errors
    /// When it does not build.
    pub(super) fn binary(&self, architecture: &Architecture) -> Result<()> {
        let mut build = cargo(self.workspace);
        build.args(["zigbuild", "--profile=dist", "--locked", "--package=fanwire-cli"]);
        build.args(["--target", architecture.target]);
        let remap = |flag: &str, between: char| {
            let home = home_of_cargo();
            let folders =
                [(self.root, "/fanwire"), (&home, "/cargo"), (&self.workspace.target, "/target")];
            folders.map(|(from, to)| format!("{flag}{between}{}={to}", from.display())).join(" ")
        };
        build.env("RUSTFLAGS", remap("--remap-path-prefix", '='));
        build.env("CFLAGS", remap("-ffile-prefix-map", '='));
        build.env("SOURCE_DATE_EPOCH", &self.date).env("CARGO_INCREMENTAL", "0");
        must(self.tools.in_path(&mut build)?).map(drop)
    }

    pub(super) fn program(&self, architecture: &Architecture) -> PathBuf {
        self.workspace.target.join(architecture.target).join("dist/fanwire")
    }

    /// Writes the licences of all libraries in the program, which each copy must carry, unless the page is newer than what it is made of.
    ///
    /// # Errors
    /// When a licence is not in the list of `about.toml`.
    pub(super) fn licences(&self, page: &Path) -> Result<()> {
        let folder = self.root.join("deploy/packages");
        let of = ["about.toml", "licenses.hbs", "../../Cargo.lock"].map(|name| folder.join(name));
        let changed = |file: &Path| fs::metadata(file).and_then(|facts| facts.modified()).ok();
        if of.iter().all(|file| changed(file) < changed(page)) {
            return Ok(());
        }
        let mut about = cargo(self.workspace);
        about.args(["about", "generate", "--locked"]);
        about.arg("--manifest-path").arg(self.root.join("crates/cli/Cargo.toml"));
        about.arg("--config").arg(folder.join("about.toml")).arg("--output-file").arg(page);
        must(self.tools.in_path(about.arg(folder.join("licenses.hbs")))?).map(drop)
    }

    /// Writes the list of parts (CycloneDX 1.5, JSON).
    ///
    /// # Errors
    /// When the program that makes it fails.
    pub(super) fn parts(&self, file: &Path) -> Result<()> {
        let mut cyclonedx = cargo(self.workspace);
        cyclonedx.args(["cyclonedx", "--format=json", "--spec-version=1.5", "--no-build-deps"]);
        cyclonedx.args(["--override-filename=parts", "--target", ARCHITECTURES[0].target]);
        cyclonedx.arg("--manifest-path").arg(self.root.join("crates/cli/Cargo.toml"));
        cyclonedx.env("SOURCE_DATE_EPOCH", &self.date);
        must(self.tools.in_path(&mut cyclonedx)?)?;
        let parts = fs::read_to_string(self.root.join("crates/cli/parts.json"))?;
        fs::write(file, parts.replace(&*self.root.to_string_lossy(), "/fanwire"))?;
        // It leaves one next to each manifest of the workspace.
        let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
        for package in metadata.packages {
            let left = package.manifest_path.with_file_name("parts.json");
            fs::remove_file(&left).with_context(|| left.to_string())?;
        }
        Ok(())
    }
}

fn home_of_cargo() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}
