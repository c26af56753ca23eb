//! `fanwire check-config`: reports all findings about a configuration file.
//! In: a file → out: findings on stdout; an error when the server would not start with it.
//! Uses `fanwire::config`, and the files that the configuration names. Never: the environment, so that the result depends on the file alone.
//! The wording of findings lives in `fanwire::config`; this file selects the printed ones.

use std::io::Write;

use anyhow::{Result, bail};
use fanwire::Server;
use fanwire::config::{ConfigError, Finding, Severity, load};

use crate::arguments::CheckConfig;
use crate::document;

pub(crate) fn run(arguments: &CheckConfig) -> Result<()> {
    let path = arguments.path();
    let (findings, unusable) = match load(Some(path), std::iter::empty(), &[]) {
        Ok((config, findings)) => (findings, Server::check(&config)),
        Err(ConfigError::Findings(findings)) => (findings, Vec::new()),
        Err(other) => return Err(other.into()),
    };
    let mut out = Vec::new();
    for error in &unusable {
        writeln!(out, "{}: {}: {error}", Severity::Error, path.display())?;
    }
    print(&findings, &mut out)?;
    let errors = count(&findings, Severity::Error) + unusable.len();
    if errors == 0 {
        writeln!(out, "{}: {}", path.display(), verdict(&findings))?;
    }
    document::print(&String::from_utf8_lossy(&out))?;
    match errors {
        0 => Ok(()),
        1 => bail!("{}: 1 error stops the start", path.display()),
        errors => bail!("{}: {errors} errors stop the start", path.display()),
    }
}

/// One line per finding, the most severe first.
pub(crate) fn print(findings: &[Finding], out: &mut impl Write) -> std::io::Result<()> {
    findings.iter().try_for_each(|finding| writeln!(out, "{}: {finding}", finding.severity))
}

/// The last line. "fine" only without warnings, because an unknown key may be a misspelt security option.
fn verdict(findings: &[Finding]) -> String {
    let numbered = |severity, word| match count(findings, severity) {
        0 => None,
        1 => Some(format!("1 {word}")),
        many => Some(format!("{many} {word}s")),
    };
    let remarks = [numbered(Severity::Warning, "warning"), numbered(Severity::Note, "note")];
    let remarks: Vec<String> = remarks.into_iter().flatten().collect();
    match count(findings, Severity::Warning) {
        0 if remarks.is_empty() => "fine".to_owned(),
        0 => format!("fine, {}", remarks.join(", ")),
        _ => format!("the server would start, with {}", remarks.join(" and ")),
    }
}

fn count(findings: &[Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
}
