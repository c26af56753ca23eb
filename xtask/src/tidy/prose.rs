//! Words that a reader with English as a second language stumbles over: none in comments and pages of the clean folders.
//! In: Rust comments and Markdown → out: a finding per line with such a word, and per folder that is clean and still listed.
//! May use the lexer; never looks at other programming languages, nor at strings.
//! A word is a row of `WORDS`; a folder that is not clean yet is a row of `NOT_YET`, a list that only shrinks.

use super::lexer::{has_word, lex};
use super::{Finding, Source};

/// Finds the words where there are to be none, and folders that could leave the list.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    check_with(sources, NOT_YET)
}

fn check_with(sources: &[Source], not_yet: &[&str]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = sources.iter().flat_map(find).collect();
    let is_clean = |row: &&&str| !findings.iter().any(|finding| is_in(&finding.path, row));
    let clean = not_yet.iter().filter(is_clean).map(|row| Finding::new(row, 0, CLEAN));
    let clean: Vec<Finding> = clean.collect();
    findings.retain(|finding| !not_yet.iter().any(|row| is_in(&finding.path, row)));
    findings.into_iter().chain(clean).collect()
}

fn find(source: &Source) -> Vec<Finding> {
    let text = match source.is_rust() {
        true => lex(&source.text).comments,
        false if source.path.ends_with(".md") => source.text.clone(),
        false => return Vec::new(),
    };
    let mut findings = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let text = text.to_lowercase();
        for (word, instead) in WORDS.iter().filter(|(word, _)| has_word(&text, word)) {
            let what = format!("`{word}`: say {instead}");
            findings.push(Finding::new(&source.path, line + 1, what));
        }
    }
    findings
}

/// Whether a path is this file, or stands below this folder.
fn is_in(path: &str, row: &str) -> bool {
    path.strip_prefix(row).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A word, and what to say instead.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("likewise", "also"),
    ("beside", "next to, or with"),
    ("meanwhile", "while …"),
    ("nobody", "no client, no task, …"),
    ("to be had", "available"),
];

const CLEAN: &str = "none of these words any more: remove its row in prose.rs";

const NOT_YET: &[&str] = &[
    "ARCHITECTURE.md",
    "bench",
    "crates/auth",
    "crates/config",
    "crates/deflate",
    "crates/fanout",
    "crates/protocol",
    "crates/shard",
    "crates/tune",
    "crates/ws",
    "tests",
];

#[cfg(test)]
mod tests;
