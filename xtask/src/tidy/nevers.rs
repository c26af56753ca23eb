//! Code does not import things that its card promises never to use: sockets, files, tokio and the like.
//! In: the Rust files with their cards → out: a finding per import or path that the card rules out.
//! May use the lexer; never judges promises without a row in `PROMISES`.
//! What a word of a card rules out is a row of the table here.

use super::lexer::lex;
use super::{Finding, Source};

/// Finds code that does what its card says it never does. Tests may take the time as the moment from which theirs runs.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    rust.iter().filter(|source| !source.is_test()).flat_map(check_one).collect()
}

fn check_one(source: &Source) -> Vec<Finding> {
    let promised = promised(&source.text);
    let kept: Vec<&Promise> = PROMISES
        .iter()
        .filter(|promise| promised.iter().any(|word| word == promise.word))
        .collect();
    if kept.is_empty() {
        return Vec::new();
    }
    let code = lex(&source.text).code;
    let mut findings = Vec::new();
    for (line, text) in code.lines().enumerate() {
        for promise in &kept {
            for path in promise.rules_out.iter().filter(|path| has_path(text, path)) {
                let what = format!("the card says never {}, this is `{path}`", promise.word);
                findings.push(Finding::new(&source.path, line + 1, what));
            }
        }
    }
    findings
}

/// Returns what the card names behind `never`, up to the end of the sentence: each part between commas and `or`, without an article.
///
/// Only parts that name a thing alone count: `never sockets, a clock or tokio`, not `never waits for sockets`.
fn promised(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//! ")).collect();
    let card = lines.join(" ").to_lowercase();
    let sentences = card.split("never").skip(1).map(|rest| {
        let rest = rest.trim_start_matches(':').trim_start();
        let end = [". ", "; ", ": "].iter().filter_map(|end| rest.find(end)).min();
        rest[..end.unwrap_or(rest.len())].trim_end_matches('.').to_owned()
    });
    let parts = sentences.flat_map(|sentence| {
        let parts = sentence.replace(" or ", ", ").replace(" and ", ", ");
        parts.split(", ").map(thing).collect::<Vec<_>>()
    });
    parts.collect()
}

/// A thing without its article and quotes.
fn thing(part: &str) -> String {
    let part = part.trim().trim_matches('`');
    let articles = ["a ", "an ", "the ", "its ", "uses ", "of "];
    articles.iter().find_map(|article| part.strip_prefix(article)).unwrap_or(part).to_owned()
}

/// Whether a path begins with this one somewhere in the line.
fn has_path(line: &str, path: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(path).any(|(at, _)| {
        let before = &line[..at];
        let after = &line[at + path.len()..];
        !before.ends_with(|c| is_word(c) || c == ':') && !after.starts_with(is_word)
    })
}

/// A thing that cards name, and the paths by which code would get to it.
struct Promise {
    word: &'static str,
    rules_out: &'static [&'static str],
}

const SOCKETS: &[&str] = &[
    "std::net::TcpStream",
    "std::net::TcpListener",
    "std::net::UdpSocket",
    "tokio::net",
    "mio",
    "socket2",
];
const CLOCKS: &[&str] = &["Instant::now", "SystemTime::now"];

const PROMISES: &[Promise] = &[
    Promise { word: "sockets", rules_out: SOCKETS },
    Promise { word: "clock", rules_out: CLOCKS },
    Promise { word: "clocks", rules_out: CLOCKS },
    Promise { word: "files", rules_out: &["std::fs", "tokio::fs"] },
    Promise { word: "file", rules_out: &["std::fs", "tokio::fs"] },
    Promise { word: "threads", rules_out: &["std::thread", "thread::spawn"] },
    Promise { word: "locks", rules_out: &["parking_lot", "std::sync::Mutex", "std::sync::RwLock"] },
    Promise { word: "lock", rules_out: &["parking_lot", "std::sync::Mutex", "std::sync::RwLock"] },
    Promise { word: "sleeps", rules_out: &["thread::sleep", "time::sleep"] },
    Promise { word: "tokio", rules_out: &["tokio"] },
    Promise { word: "mio", rules_out: &["mio"] },
    Promise { word: "hyper", rules_out: &["hyper", "hyper_util"] },
    Promise { word: "axum", rules_out: &["axum"] },
    Promise { word: "http", rules_out: &["http", "hyper", "axum"] },
    Promise { word: "serde", rules_out: &["serde", "serde_json"] },
    Promise { word: "std::net", rules_out: &["std::net"] },
    Promise { word: "std::fs", rules_out: &["std::fs"] },
    Promise { word: "ws", rules_out: &["fanwire_ws"] },
    Promise { word: "deflate", rules_out: &["fanwire_deflate"] },
    Promise { word: "node", rules_out: &["fanwire_node"] },
];

#[cfg(test)]
mod tests;
