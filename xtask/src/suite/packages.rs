//! The steps about what is handed out: packages and static programs, the documentation as a site.
//! In: where the workspace and its target folder are → out: passed and failed tests.
//! May make a release and the site, and play tests to them; packages are installed in folders of their own only.
//! Promises about them stand in docs/install.md; the tests are tests/interop/packages and tests/interop/site.

use std::process::Command;

use anyhow::Result;

use super::steps::interop;
use super::tally::Tally;
use crate::command::watch;
use crate::{Workspace, dist, machine, site};

/// Makes a release, installs it on a clean Debian, and starts the one for AArch64 under qemu.
pub(super) fn packages(workspace: &Workspace) -> Result<Tally> {
    let release = dist::Release::build(workspace, &[])?;
    let (packages, again) = (release.pack("packages")?, release.pack("packages-again")?);
    let mut test = Command::new(machine::node()?);
    test.args(["--test", "--test-reporter=spec", "packages/packages.test.js"]);
    test.current_dir(interop(workspace)).env("FANWIRE_PACKAGES", packages);
    test.env("FANWIRE_PACKAGES_AGAIN", again);
    Ok(Tally::of_node(&watch(&mut test)?))
}

/// Builds the site, follows its links, and searches in it.
pub(super) fn site(workspace: &Workspace) -> Result<Tally> {
    let built = site::build(workspace)?;
    let mut test = Command::new(machine::node()?);
    test.args(["--test", "--test-reporter=spec", "site/site.test.js"]);
    test.current_dir(interop(workspace)).env("FANWIRE_SITE", built);
    Ok(Tally::of_node(&watch(&mut test)?))
}
