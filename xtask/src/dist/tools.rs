//! Tools of a release, installed where they are missing: a C compiler for musl, packagers, listers of licences.
//! In: the target folder → out: programs in its folder `dist-tools`.
//! May run rustup, pip, cargo and Go; versions are those of deploy/packages and of `TOOLS`.
//! A new tool is a row here.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::Workspace;
use crate::command::{cargo, must};
use crate::machine;

/// Programs that are installed by now.
pub(super) struct Tools {
    folders: [PathBuf; 2],
    pub(super) nfpm: PathBuf,
}

impl Tools {
    /// Installs what is missing.
    ///
    /// # Errors
    /// When a registry does not answer.
    pub(super) fn install(workspace: &Workspace) -> Result<Self> {
        let root = workspace.root.join("deploy/packages");
        let folder = workspace.target.join("dist-tools");
        let targets = super::ARCHITECTURES.map(|architecture| architecture.target);
        must(Command::new("rustup").args(["target", "add"]).args(targets))?;
        let venv = folder.join("venv");
        let mut pip = Command::new(machine::python(&venv)?);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--require-hashes", "--only-binary", ":all:", "-r"]);
        must(pip.arg(root.join("requirements.txt")))?;
        for (name, version, features) in TOOLS {
            let mut install = cargo(workspace);
            install.args(["install", "--quiet", "--locked", name, "--version", version]);
            install.args(["--features", features, "--root"]).arg(&folder);
            must(install.env("CARGO_TARGET_DIR", folder.join("build")))?;
        }
        let nfpm = folder.join("bin/nfpm");
        let mut go = Command::new(machine::go()?);
        go.args(["build", "-mod=readonly", "-buildvcs=false", "-o"]).arg(&nfpm);
        go.arg("github.com/goreleaser/nfpm/v2/cmd/nfpm").env("CGO_ENABLED", "0");
        must(go.current_dir(root))?;
        Ok(Self { folders: [venv.join("bin"), folder.join("bin")], nfpm })
    }

    /// Makes the tools known to a cargo that calls them as its own commands.
    ///
    /// # Errors
    /// When a folder's name has a colon.
    pub(super) fn in_path<'a>(&self, command: &'a mut Command) -> Result<&'a mut Command> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.folders.iter().cloned().chain(std::env::split_paths(&path));
        Ok(command.env("PATH", std::env::join_paths(folders).context("PATH")?))
    }
}

/// Names in the registry, versions, features.
const TOOLS: [(&str, &str, &str); 2] =
    [("cargo-about", "0.9.3", "cli"), ("cargo-cyclonedx", "0.5.9", "")];
