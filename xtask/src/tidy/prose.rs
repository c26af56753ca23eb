//! Words that a reader with English as a second language stumbles over: none in comments and pages.
//! In: Rust comments and Markdown → out: a finding per line with such a word.
//! May use the lexer; never looks at other programming languages, nor at strings.
//! A word is a row of `WORDS`, with what to write instead.

use super::lexer::{has_word, lex};
use super::{Finding, Source};

/// Finds the words.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    sources.iter().flat_map(find).collect()
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
