//! Lock files of the interop suites: exact versions with hashes, and no registry host.
//! In: `package-lock.json` and `requirements.txt` → out: a finding per line that would tie a run to one host.
//! May read lines only; npm and pip check the hashes themselves.
//! Which files are locks is decided by their names here; what they lock is written by npm and pip-compile.

use super::{Finding, Source};

/// Finds recorded hosts and unpinned packages.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    sources.iter().flat_map(check_one).collect()
}

fn check_one(source: &Source) -> Vec<Finding> {
    let name = source.path.rsplit('/').next().unwrap_or_default();
    let wrong: fn(&str) -> Option<&'static str> = match name {
        "package-lock.json" => npm_line,
        "requirements.txt" => pip_line,
        _ => return Vec::new(),
    };
    let lines = source.text.lines().enumerate();
    let bad = lines.filter_map(|(line, text)| Some((line + 1, wrong(text.trim())?)));
    bad.map(|(line, what)| Finding::new(&source.path, line, what)).collect()
}

fn npm_line(line: &str) -> Option<&'static str> {
    let is_host = line.starts_with("\"resolved\"");
    is_host.then_some("records a registry: use npm install --omit-lockfile-registry-resolved")
}

fn pip_line(line: &str) -> Option<&'static str> {
    if line.starts_with("--") && !line.starts_with("--hash=") {
        return Some("names an index or a folder: only packages with hashes belong here");
    }
    let is_package = line.starts_with(|c: char| c.is_alphanumeric());
    (is_package && !line.contains("==")).then_some("is not pinned with ==")
}

#[cfg(test)]
mod tests;
