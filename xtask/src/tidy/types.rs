//! Names of types: one idea for each, so none is defined in more than two crates.
//! In: the Rust files of `crates` without tests → out: a finding per name in three crates or more.
//! May use the lexer; never counts associated types and generic parameters.
//! A name that still has several meanings is a row of `NOT_YET`; the list only shrinks, because a row without need fails.

use std::collections::{BTreeMap, BTreeSet};

use super::lexer::lex;
use super::{Finding, Source};

/// Finds names that too many crates define.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    check_with(rust, NOT_YET)
}

fn check_with(rust: &[Source], not_yet: &[&str]) -> Vec<Finding> {
    let mut crates: BTreeMap<String, BTreeMap<&str, &str>> = BTreeMap::new();
    for source in rust.iter().filter(|source| !source.is_test()) {
        let Some(member) = member(&source.path) else { continue };
        for name in types(&lex(&source.text).code) {
            crates.entry(name).or_default().entry(member).or_insert(&source.path);
        }
    }
    crates.retain(|_, of| of.len() > CRATES_MAX);
    let names: BTreeSet<&str> = crates.keys().map(String::as_str).collect();
    let gone = not_yet.iter().filter(|row| !names.contains(*row));
    let gone = gone.map(|row| {
        Finding::new(HERE, 0, format!("`{row}` is in two crates at most: remove its row"))
    });
    let many = crates.iter().filter(|(name, _)| !not_yet.contains(&name.as_str()));
    let many = many.filter_map(|(name, of)| {
        let members: Vec<&str> = of.keys().copied().collect();
        let what = format!("`{name}` is a type in {}: give each idea a name", members.join(", "));
        Some(Finding::new(of.values().next()?, 0, what))
    });
    many.chain(gone).collect()
}

/// The crate of a file: `ws` of `crates/ws/src/a.rs`.
fn member(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split_once("/src/").map(|(member, _)| member)
}

/// The types that code defines, those inside functions and modules, too.
fn types(code: &str) -> Vec<String> {
    let defined = code.lines().filter_map(|line| {
        let start = line.trim_start();
        let rest = start.strip_prefix("pub(").and_then(|rest| rest.split_once(") "));
        let rest =
            rest.map(|(_, rest)| rest).or_else(|| start.strip_prefix("pub ")).unwrap_or(start);
        let is_alias = rest.starts_with("type ") && rest.len() == line.len() || rest != start;
        let keyword = KEYWORDS.iter().find(|keyword| rest.starts_with(**keyword))?;
        if *keyword == "type " && !is_alias {
            return None;
        }
        let name = &rest[keyword.len()..];
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        Some(name[..end].to_owned())
    });
    defined.collect()
}

const KEYWORDS: [&str; 4] = ["struct ", "enum ", "trait ", "type "];
const CRATES_MAX: usize = 2;
const HERE: &str = "xtask/src/tidy/types.rs";

const NOT_YET: &[&str] = &[];

#[cfg(test)]
mod tests;
