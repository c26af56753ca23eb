//! Crates that are simulated have no clock and no chance but those that they are given, so that a seed replays what they do.
//! In: the Rust files of these crates → out: a finding per call of another source that is not listed.
//! May use the lexer; never looks at tests, suites of engines and bodies of fuzz targets, which may take any time and number.
//! Changed here: the table `LISTED`, with the reason why a line decides nothing.

use super::lexer::lex;
use super::{Finding, Source};

/// Finds sources of time and chance that are not listed.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in rust.iter().filter(|source| is_simulated(source)) {
        let code = lex(&source.text).code;
        for (line, text) in code.lines().enumerate() {
            for word in SOURCES.iter().filter(|word| text.contains(**word)) {
                let is_listed =
                    LISTED.iter().any(|(path, listed, _)| *path == source.path && listed == word);
                if !is_listed {
                    let what = format!(
                        "`{word}` here is no part of a seed: take the time or the chance as a parameter"
                    );
                    findings.push(Finding::new(&source.path, line + 1, what));
                }
            }
        }
    }
    findings
}

fn is_simulated(source: &Source) -> bool {
    let is_of_crate = CRATES.iter().any(|folder| source.path.starts_with(folder));
    let is_for_tests =
        ["conformance", "fuzzing", "fixture"].iter().any(|part| source.path.contains(part));
    is_of_crate && !is_for_tests && !source.is_test()
}

const CRATES: [&str; 5] = [
    "crates/auth/src/",
    "crates/broker/src/",
    "crates/cluster/src/",
    "crates/node/src/",
    "crates/policy/src/",
];

const SOURCES: [&str; 6] =
    ["Instant::now", "SystemTime::now", "rand::random", "RandomState", "new_v4", "thread_rng"];

/// Path, source, and why it decides nothing that anybody sees.
const LISTED: [(&str, &str, &str); 6] = [
    ("crates/node/src/node.rs", "Instant::now", "the start of a node that is given no time"),
    ("crates/node/src/node.rs", "SystemTime::now", "the start of a node that is given no time"),
    ("crates/node/src/broadcast.rs", "Instant::now", "how long encoding took, for a metric"),
    (
        "crates/broker/src/chance.rs",
        "rand::random",
        "the port itself, where no caller gives another",
    ),
    ("crates/broker/src/position.rs", "rand::random", "epochs of engines outside of this process"),
    ("crates/auth/src/revocation.rs", "RandomState", "keys of a table, whose order is not visible"),
];

#[cfg(test)]
mod tests;
