//! ARCHITECTURE.md: at most 250 lines, and every crate has its place in it.
//! In: the page and the members of the workspace → out: the findings.
//! May look for names only; never judges the prose, and is silent while there is no page.
//! What must hold of a page is changed here; the page is written by hand.

use super::arrows::Crate;
use super::{Finding, Source};

/// Checks the page against the workspace.
pub(crate) fn check(sources: &[Source], crates: &[Crate]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else { return Vec::new() };
    let mut findings = Vec::new();
    let lines = page.text.lines().count();
    if lines > LINES_MAX {
        findings.push(Finding::new(
            PAGE,
            lines,
            format!("{lines} lines; the page stops at {LINES_MAX}"),
        ));
    }
    let absent = crates.iter().filter(|member| !page.text.contains(&format!("`{}", member.folder)));
    findings.extend(absent.map(|member| {
        Finding::new(PAGE, 0, format!("does not name `{}` ({})", member.folder, member.name))
    }));
    findings
}

const PAGE: &str = "ARCHITECTURE.md";
const LINES_MAX: usize = 250;

#[cfg(test)]
mod tests;
