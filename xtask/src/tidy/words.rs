//! Words that do not land: marks of unfinished work, hidden tests, sleeping in tests, and spins.
//! In: the Rust files and the interop suites → out: a finding per line with such a word.
//! May use the lexer for Rust, so that a word inside a string is only a string; other languages are read as they are.
//! A word is a row of one of the tables below.

use super::lexer::lex;
use super::{Finding, Source};

/// Finds forbidden words.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| is_program(&source.path)) {
        let lexed = if source.is_rust() { lex(&source.text) } else { as_it_is(&source.text) };
        find(source, &lexed.comments, MARKS, &mut findings);
        find(source, &lexed.code, MARKS, &mut findings);
        let words = if source.is_rust() { UNFINISHED } else { UNFINISHED_ELSEWHERE };
        find(source, &lexed.code, words, &mut findings);
        if source.is_test() {
            find(source, &lexed.code, SLEEPS, &mut findings);
        }
        if !source.path.starts_with("crates/testing/") {
            find(source, &lexed.code, SPINS, &mut findings);
        }
    }
    findings
}

fn find(source: &Source, view: &str, words: &[Word], findings: &mut Vec<Finding>) {
    for (line, text) in view.lines().enumerate() {
        for word in words.iter().filter(|word| text.contains(word.word)) {
            let what = format!("`{}`: {}", word.word, word.instead);
            findings.push(Finding::new(&source.path, line + 1, what));
        }
    }
}

fn as_it_is(text: &str) -> super::lexer::Lexed {
    super::lexer::Lexed { code: text.to_owned(), comments: String::new() }
}

fn is_program(path: &str) -> bool {
    [".rs", ".js", ".py"].iter().any(|ending| path.ends_with(ending))
}

struct Word {
    word: &'static str,
    instead: &'static str,
}

const MARKS: &[Word] = &[
    Word { word: "FIXME", instead: "finish it, or open an issue" },
    Word { word: "XXX", instead: "finish it, or open an issue" },
];

const UNFINISHED: &[Word] = &[
    Word { word: "should_panic", instead: "return an error and check it" },
    Word { word: "#[ignore", instead: "run the test or remove it" },
];

const UNFINISHED_ELSEWHERE: &[Word] = &[
    Word { word: "debugger;", instead: "remove it" },
    Word { word: "test.skip", instead: "run the test or remove it" },
    Word { word: "test.only", instead: "run all tests" },
    Word { word: "@unittest.skip", instead: "run the test or remove it" },
];

const SLEEPS: &[Word] = &[
    Word { word: "thread::sleep", instead: "wait for an event, or pass the time in" },
    Word { word: "time::sleep", instead: "wait for an event, or pass the time in" },
    Word { word: "time.sleep", instead: "wait for an event" },
    Word { word: "asyncio.sleep", instead: "wait for an event" },
    Word { word: "timers/promises", instead: "wait for an event" },
];

/// Spins belong to the one crate that has the waits of tests; other programs wait for an event.
const SPINS: &[Word] = &[
    Word { word: "yield_now", instead: "wait_for of fanwire-testing, or wait for an event" },
    Word { word: "park_timeout", instead: "wait_for of fanwire-testing, or wait for an event" },
];

#[cfg(test)]
mod tests;
