//! Merge markers: no file of the repository has a line that begins with `<<<<<<<` or `>>>>>>>`.
//! In: the paths of all tracked files, of any type → out: a finding per line that begins with a marker.
//! May ask git which files are tracked, and read them; without git it looks at the sources that tidy covers anyway.
//! The markers are the table here; git writes them into a file that it could not merge.

use std::path::Path;

use super::{Finding, Source};
use crate::command::ask;

/// Reads every tracked file below `root` and finds its markers.
pub(crate) fn check(root: &Path, sources: &[Source]) -> Vec<Finding> {
    let folder = root.to_string_lossy();
    let Some(tracked) = ask("git", &["-C", &folder, "ls-files", "-z"]) else {
        return sources
            .iter()
            .flat_map(|source| find(&source.path, source.text.as_bytes()))
            .collect();
    };
    let paths = tracked.split('\0').filter(|path| !path.is_empty());
    // A file that is tracked and was just deleted has no lines.
    paths.flat_map(|path| find(path, &std::fs::read(root.join(path)).unwrap_or_default())).collect()
}

fn find(path: &str, bytes: &[u8]) -> Vec<Finding> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    let marked = lines.filter(|(_, line)| MARKERS.iter().any(|marker| line.starts_with(marker)));
    marked
        .map(|(line, _)| Finding::new(path, line + 1, "a merge marker: finish the merge"))
        .collect()
}

/// The line between the two sides, `=======`, is also how Markdown underlines a title.
const MARKERS: [&[u8]; 2] = [b"<<<<<<<", b">>>>>>>"];

#[cfg(test)]
mod tests;
