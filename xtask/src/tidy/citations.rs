//! Citations: `protocol §9` and `server API §3` name headings that are there, `RFC 6455 §5.1a` a sentence of a list in `crates/ws/rfc`.
//! In: programs, pages, lists of sentences → out: a finding per citation that leads nowhere, and per sentence without code or without a test.
//! May read lines only; a section of an RFC without a letter is not looked at.
//! A document that is cited by sections is a row of the tables below.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Source};

/// Finds citations of sections that their document does not have, and sentences of RFCs that no code or no test cites.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let sections = DOCUMENTS.iter().flat_map(|document| check_one(document, sources));
    sections.chain(RFCS.iter().flat_map(|rfc| check_rfc(rfc, sources))).collect()
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

/// Every sentence of the list is cited by code that obeys it and by a test, unless the list says why it does not apply.
fn check_rfc(rfc: &Document, sources: &[Source]) -> Vec<Finding> {
    let Some(list) = sources.iter().find(|source| source.path == rfc.path) else {
        return vec![Finding::new(rfc.path, 0, "is missing")];
    };
    let sentences = sentences(&list.text);
    let mut findings = Vec::new();
    let mut in_code = BTreeSet::new();
    let mut in_tests = BTreeSet::new();
    let rust = sources.iter().filter(|source| source.is_rust() && !source.path.starts_with(HERE));
    for source in rust {
        for (line, text) in source.text.lines().enumerate() {
            let text = text.to_lowercase();
            let cited = cited(&text, rfc.name).filter(|number| number.ends_with(is_letter));
            for number in cited.map(str::to_owned) {
                if !sentences.contains_key(number.as_str()) {
                    let what = format!("§{number} is no sentence of {}", rfc.path);
                    findings.push(Finding::new(&source.path, line + 1, what));
                }
                let place = if source.is_test() { &mut in_tests } else { &mut in_code };
                place.insert(number);
            }
        }
    }
    for (number, sentence) in sentences.iter().filter(|(_, sentence)| sentence.applies) {
        for (places, kind) in [(&in_code, "code"), (&in_tests, "test")] {
            if !places.contains(*number) {
                let what = format!("§{number} is cited in no {kind}");
                findings.push(Finding::new(rfc.path, sentence.line, what));
            }
        }
    }
    findings
}

/// The sentences of a list by their numbers: `5.1a The server MUST …`; behind ` | ` stands why a sentence does not apply.
fn sentences(list: &str) -> BTreeMap<&str, Sentence> {
    let lines = list.lines().enumerate().filter(|(_, text)| !text.starts_with('#'));
    let numbered = lines.filter_map(|(line, text)| {
        let (number, sentence) = text.split_once(' ')?;
        Some((number, Sentence { line: line + 1, applies: !sentence.contains(" | ") }))
    });
    numbered.collect()
}

struct Sentence {
    line: usize,
    applies: bool,
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
        let end = if text[end..].starts_with(is_letter) { end + 1 } else { end };
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
        && word.trim_end_matches(is_letter).chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_letter(c: char) -> bool {
    c.is_ascii_lowercase()
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

/// RFCs with a list of the sentences that oblige a server.
const RFCS: &[Document] = &[
    Document { name: "rfc 6455", path: "crates/ws/rfc/6455.txt" },
    Document { name: "rfc 7692", path: "crates/ws/rfc/7692.txt" },
];

/// Longest first.
const BETWEEN: &[&str] = &[", §", "–§", "–"];

/// This check and its tests speak of sections that need not be.
const HERE: &str = "xtask/src/tidy/citations";

#[cfg(test)]
mod tests;
