//! Sizes: files stop at 600 lines. Functions stop at 90, which is clippy's `too_many_lines` with the number in `clippy.toml`.
//! In: the Rust files → out: a finding per file that is too long.
//! May count lines only; never reads what stands in them.
//! Changed here: the number of lines.

use super::{Finding, Source};

/// Finds files that are too long.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    let counted = rust.iter().map(|source| (source, source.text.lines().count()));
    let long = counted.filter(|(_, lines)| *lines > FILE_LINES_MAX);
    let what = |lines| format!("{lines} lines; files stop at {FILE_LINES_MAX}");
    long.map(|(source, lines)| Finding::new(&source.path, lines, what(lines))).collect()
}

const FILE_LINES_MAX: usize = 600;

#[cfg(test)]
mod tests;
