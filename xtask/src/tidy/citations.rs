//! Citations of our own documents: `protocol §9` and `server API §3` name headings that are there.
//! In: programs and pages → out: a finding per citation that leads nowhere.
//! May read lines only; RFCs are cited by their numbers and are not looked at.
//! A document that is cited by sections is a row of the table below.

use std::collections::BTreeSet;

use super::{Finding, Source};

/// Finds citations of sections that their document does not have.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    DOCUMENTS.iter().flat_map(|document| check_one(document, sources)).collect()
}

fn check_one(document: &Document, sources: &[Source]) -> Vec<Finding> {
    let page = sources.iter().find(|source| source.path == document.path);
    let sections = page.map(|page| sections(&page.text)).unwrap_or_default();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| !source.path.starts_with(HERE)) {
        for (line, text) in source.text.lines().enumerate() {
            let text = text.to_lowercase();
            let missing = cited(&text, document.name).filter(|number| !sections.contains(number));
            findings.extend(missing.map(|number| {
                let what = format!("§{number} is no heading of {}", document.path);
                Finding::new(&source.path, line + 1, what)
            }));
        }
    }
    findings
}

/// The numbers in front of a page's headings: `## 5. Life`, `### 5.2 Order`.
fn sections(page: &str) -> BTreeSet<&str> {
    let headings = page.lines().filter_map(|line| line.strip_prefix('#'));
    let titles = headings.map(|line| line.trim_start_matches('#').trim_start());
    let words = titles.filter_map(|title| title.split(' ').next());
    words.map(|word| word.trim_end_matches('.')).filter(|word| is_number(word)).collect()
}

/// The numbers behind the name of a document in a line of small letters: `protocol §8, §9`, `protocol §5.2–5.6`.
fn cited<'a>(line: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let behind = line.match_indices(name).map(|(at, name)| &line[at + name.len()..]);
    behind.filter_map(|rest| rest.strip_prefix(" §")).flat_map(numbers)
}

/// The numbers at the start of a text, with what may stand between two of them.
fn numbers(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let number = text[..end].trim_end_matches('.');
        if !is_number(number) {
            break;
        }
        found.push(number);
        let after = &text[end..];
        rest = BETWEEN.iter().find_map(|between| after.strip_prefix(between));
    }
    found
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// A page that the code cites by the numbers of its sections.
struct Document {
    /// Name in small letters.
    name: &'static str,
    path: &'static str,
}

const DOCUMENTS: &[Document] = &[
    Document { name: "protocol", path: "docs/protocol.md" },
    Document { name: "server api", path: "docs/server-api.md" },
];

/// Longest first.
const BETWEEN: &[&str] = &[", §", "–§", "–"];

/// This check and its tests speak of sections that need not be.
const HERE: &str = "xtask/src/tidy/citations";

#[cfg(test)]
mod tests;
