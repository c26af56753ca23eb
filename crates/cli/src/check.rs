//! `fanwire check-config`: reports all findings about a configuration, as the server would load it.
//! In: a file and the environment → out: findings on stdout; an error when the server would not start with them.
//! Uses `fanwire_config`, `environment`, and the files that the configuration names. Never: a server.
//! The wording of findings lives in `fanwire_config`; this file selects the printed ones.

use std::cmp::Reverse;
use std::io::Write;

use anyhow::{Context as _, Result, bail};
use fanwire::Server;
use fanwire_config::{ConfigError, Finding, Problem, Severity, load};

use crate::arguments::CheckConfig;
use crate::{document, environment};

pub(crate) fn run(arguments: &CheckConfig) -> Result<()> {
    let path = arguments.path().context("no configuration file is here: name one")?;
    let loaded = match &arguments.env_file {
        Some(file) => load(Some(path), environment::variables_of(file)?, &[]),
        None => load(Some(path), environment::variables()?, &[]),
    };
    let (mut findings, unusable, doubtful) = match loaded {
        Ok((config, findings)) => (findings, Server::check(&config), Server::warnings(&config)),
        Err(ConfigError::Findings(findings)) => (findings, Vec::new(), Vec::new()),
        Err(other) => return Err(other.into()),
    };
    let stops = count(&findings, Severity::Error) + unusable.len();
    if arguments.strict {
        refuse_unknown(&mut findings);
    }
    let mut out = Vec::new();
    for warning in &doubtful {
        writeln!(out, "{}: {}: {warning}", Severity::Warning, path.display())?;
    }
    print(&findings, &mut out)?;
    for error in &unusable {
        writeln!(out, "{}: {}: {error}", Severity::Error, path.display())?;
    }
    let errors = count(&findings, Severity::Error) + unusable.len();
    if errors == 0 {
        writeln!(out, "{}: {}", path.display(), verdict(&findings, doubtful.len()))?;
    }
    document::print(&String::from_utf8_lossy(&out))?;
    match (stops, errors) {
        (0, 0) => Ok(()),
        (0, 1) => bail!("{}: 1 unknown key, which --strict refuses", path.display()),
        (0, unknown) => bail!("{}: {unknown} unknown keys, which --strict refuses", path.display()),
        (1, _) => bail!("{}: 1 error stops the start", path.display()),
        (stops, _) => bail!("{}: {stops} errors stop the start", path.display()),
    }
}

/// Makes errors of unknown keys.
fn refuse_unknown(findings: &mut [Finding]) {
    for finding in findings.iter_mut() {
        if matches!(finding.problem, Problem::Unknown { .. }) {
            finding.severity = Severity::Error;
        }
    }
}

/// One line per finding, the most severe last: a terminal shows the end of a long list.
pub(crate) fn print(findings: &[Finding], out: &mut impl Write) -> std::io::Result<()> {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| Reverse(finding.severity));
    sorted.iter().try_for_each(|finding| writeln!(out, "{}: {finding}", finding.severity))
}

/// The last line. "fine" only without warnings, because an unknown key may be a misspelt security option.
fn verdict(findings: &[Finding], doubtful: usize) -> String {
    let warnings = count(findings, Severity::Warning) + doubtful;
    let numbered = |count, word| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        many => Some(format!("{many} {word}s")),
    };
    let notes = count(findings, Severity::Note);
    let remarks: Vec<String> =
        [numbered(warnings, "warning"), numbered(notes, "note")].into_iter().flatten().collect();
    match warnings {
        0 if remarks.is_empty() => "fine".to_owned(),
        0 => format!("fine, {}", remarks.join(", ")),
        _ => format!("the server would start, with {}", remarks.join(" and ")),
    }
}

fn count(findings: &[Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
}
