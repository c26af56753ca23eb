//! The one list of dependencies, in the root `Cargo.toml`: each is used by a member.
//! In: the manifests of the workspace as text → out: a finding per dependency that no member inherits.
//! May read lines only; that members inherit and name no version themselves is cargo's and the reader's business.
//! Changed here: how a line of the list looks; why each is there stands next to it.

use super::{Finding, Source};

/// Finds dependencies of the list that no member inherits.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(root) = sources.iter().find(|source| source.path == ROOT) else { return Vec::new() };
    let members: Vec<&Source> =
        sources.iter().filter(|source| source.path.ends_with("/Cargo.toml")).collect();
    let is_used = |name: &str| {
        let inherits = |line: &str| key(line) == Some(name) && line.contains("workspace");
        members.iter().any(|member| member.text.lines().any(inherits))
    };
    let unused = list(&root.text).filter(|(_, name)| !is_used(name));
    let finding = |(line, name)| Finding::new(ROOT, line, format!("no member uses `{name}`"));
    unused.map(finding).collect()
}

/// The names in the list, with their lines.
fn list(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = manifest.lines().enumerate().skip_while(|(_, line)| *line != SECTION).skip(1);
    let rows = lines.take_while(|(_, line)| !line.starts_with('['));
    rows.filter_map(|(line, text)| Some((line + 1, key(text)?)))
}

/// Returns the key of a line of TOML, up to a dot: `redis` of `redis.workspace = true`.
fn key(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let name = key.split('.').next().unwrap_or(key).trim();
    (!name.is_empty() && !name.starts_with('#')).then_some(name)
}

const ROOT: &str = "Cargo.toml";
const SECTION: &str = "[workspace.dependencies]";

#[cfg(test)]
mod tests;
