//! Words that a reader with English as a second language stumbles over: none in comments and pages. No long lines in pages.
//! In: Rust comments and Markdown → out: a finding per line with such a word, and per line of a page that is too long.
//! May use the lexer; never looks at other programming languages, nor at strings.
//! A word is a row of `WORDS`, with what to write instead. Pages that programs write may have long lines (`GENERATED`).

use super::lexer::{has_word, lex};
use super::{Finding, Source};

/// Finds the words and the long lines.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    sources.iter().flat_map(find).collect()
}

fn find(source: &Source) -> Vec<Finding> {
    let text = if source.is_rust() {
        lex(&source.text).comments
    } else if source.path.ends_with(".md") {
        source.text.clone()
    } else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let text = text.to_lowercase();
        for (word, instead) in WORDS.iter().filter(|(word, _)| has_word(&text, word)) {
            let what = format!("`{word}`: say {instead}");
            findings.push(Finding::new(&source.path, line + 1, what));
        }
        if is_page(&source.path) && text.chars().count() > LINE_CHARS_MAX {
            let what = format!("longer than {LINE_CHARS_MAX} characters");
            findings.push(Finding::new(&source.path, line + 1, what));
        }
    }
    findings
}

/// A page for users, or the page for contributors, that people write.
fn is_page(path: &str) -> bool {
    let is_written = path.starts_with("docs/") && !GENERATED.contains(&path);
    is_written || path == "README.md" || path == "CONTRIBUTING.md"
}

const LINE_CHARS_MAX: usize = 140;
const GENERATED: [&str; 2] = ["docs/configuration.md", "docs/mistakes.md"];

/// A word, and what to say instead.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again"),
    ("likewise", "also"),
    ("beside", "next to, or with"),
    ("meanwhile", "while …"),
    ("nobody", "no client, no task, …"),
    ("to be had", "available"),
];

#[cfg(test)]
mod tests;
