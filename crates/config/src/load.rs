//! Reads a configuration from its sources: the settings of all of them, then their values, then the relations between keys.
//! In: a path, environment pairs, flags → out: `Config` and findings, or why there is none.
//! Uses `file`, `settings`, `apply` and `rules`, in this order. Never: the meaning of a key.
//! Changed here: the order of the steps. `reload` takes them again for a running server.

use std::path::Path;

use crate::apply::apply;
use crate::file::{self, FileError, FileTree};
use crate::finding::{Finding, Severity};
use crate::options::Config;
use crate::rules;
use crate::settings::Settings;

/// Reads the configuration: flags win over environment, environment over file, file over defaults.
///
/// `environment` holds all variables of the process; those that begin with `FANWIRE_` or `CENTRIFUGO_`
/// are looked at, and of two that mean the same key Fanwire's wins. `flags` are dotted keys with values
/// written as in the environment. Where nothing is configured, the result is development mode (`Config::development`).
///
/// # Errors
/// The file cannot be read or parsed, or at least one finding is an error; then all findings are in it.
pub fn load(
    file: Option<&Path>,
    environment: impl Iterator<Item = (String, String)>,
    flags: &[(String, String)],
) -> Result<(Config, Vec<Finding>), ConfigError> {
    assemble(file::tree(file)?, environment, flags)
}

/// `load` after the file was read.
pub(crate) fn assemble(
    file: Option<FileTree<'_>>,
    environment: impl Iterator<Item = (String, String)>,
    flags: &[(String, String)],
) -> Result<(Config, Vec<Finding>), ConfigError> {
    let (settings, findings) = collect(file, environment, flags, false);
    finish(&settings, findings)
}

/// The settings of all sources. `is_closed`: without any configuration there is no development mode.
pub(crate) fn collect(
    file: Option<FileTree<'_>>,
    environment: impl Iterator<Item = (String, String)>,
    flags: &[(String, String)],
    is_closed: bool,
) -> (Settings, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut settings = Settings { is_closed, ..Settings::default() };
    let is_configured = file.is_some();
    if let Some((path, tree)) = file {
        settings.add_file(path, tree, &mut findings);
    }
    settings.add_environment(environment, &mut findings);
    settings.add_flags(flags, &mut findings);
    settings.rename_former(&mut findings);
    if !is_configured {
        settings.assume_development(&findings);
    }
    (settings, findings)
}

/// Makes the configuration of settings, with these and further findings.
pub(crate) fn finish(
    settings: &Settings,
    mut findings: Vec<Finding>,
) -> Result<(Config, Vec<Finding>), ConfigError> {
    let config = apply(settings, &mut findings);
    rules::check(&config, settings, &mut findings);
    findings.sort_by_key(|finding| finding.severity);
    match findings.first() {
        Some(worst) if worst.severity == Severity::Error => Err(ConfigError::Findings(findings)),
        _ => Ok((config, findings)),
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read, or is not what its name says.
    #[error("{0}")]
    File(#[from] FileError),
    /// All findings, errors first; there is at least one error.
    #[error("{}", lines_of_errors(.0))]
    Findings(Vec<Finding>),
    /// A reload whose values are valid together, but not with the running values of these keys, which a restart changes.
    #[error(
        "the configuration is valid, but a running server cannot change to it: other new values depend on {}, \
         which need a restart", .0.join(", ")
    )]
    NeedsRestart(Vec<String>),
}

fn lines_of_errors(findings: &[Finding]) -> String {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    let lines: Vec<String> = errors.map(Finding::to_string).collect();
    lines.join("\n")
}
