//! Cards: every Rust file opens with at least four `//!` lines.
//! In: the Rust files → out: a finding per file without its card.
//! May look at the first lines only; never judges what a card says.
//! Changed here: how many lines a card has; long tables are left out by name in `tidy`.

use super::{Finding, Source};

/// Finds the files that do not open with a card.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    let bare = rust.iter().filter(|source| card_lines(&source.text) < CARD_LINES_MIN);
    bare.map(|source| Finding::new(&source.path, 1, WHAT)).collect()
}

/// How many lines in a row, from the first on, are `//!` lines with text.
fn card_lines(text: &str) -> usize {
    text.lines()
        .take_while(|line| line.strip_prefix("//! ").is_some_and(|text| !text.trim().is_empty()))
        .count()
}

const CARD_LINES_MIN: usize = 4;
const WHAT: &str = "no card: four `//!` lines (what; in → out; may use, never uses; changed here)";

#[cfg(test)]
mod tests;
