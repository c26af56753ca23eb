//! `fanwire check-config`: everything there is to say about a configuration file.
//! In: a file → out: findings on stdout; an error when the server would not start with it.
//! Uses `fanwire::config`. Never: the environment, so that the answer is about the file alone.
//! The wording of findings lives in `fanwire::config`; this file chooses what is printed.

use std::io::Write;

use anyhow::{Result, bail};
use fanwire::config::{ConfigError, Finding, Severity, load};

use crate::arguments::CheckConfig;

pub(crate) fn run(arguments: &CheckConfig) -> Result<()> {
    let path = arguments.path();
    let findings = match load(Some(path), std::iter::empty(), &[]) {
        Ok((_, findings)) | Err(ConfigError::Findings(findings)) => findings,
        Err(other) => return Err(other.into()),
    };
    print(&findings, &mut std::io::stdout().lock())?;
    match count(&findings, Severity::Error) {
        0 => {
            println!("{}: fine, {}", path.display(), remarks(&findings));
            Ok(())
        }
        1 => bail!("{}: 1 error stops the start", path.display()),
        errors => bail!("{}: {errors} errors stop the start", path.display()),
    }
}

/// One line per finding, the worst first.
pub(crate) fn print(findings: &[Finding], out: &mut impl Write) -> std::io::Result<()> {
    findings.iter().try_for_each(|finding| writeln!(out, "{}: {finding}", finding.severity))
}

fn remarks(findings: &[Finding]) -> String {
    let warnings = count(findings, Severity::Warning);
    let notes = count(findings, Severity::Note);
    format!("{warnings} warnings, {notes} notes")
}

fn count(findings: &[Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
}
