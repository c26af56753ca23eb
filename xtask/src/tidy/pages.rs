//! ARCHITECTURE.md: at most 300 lines, every crate has its place in it, and the glossary stays short.
//! In: the page and the members of the workspace → out: the findings.
//! May look for names only; never judges the prose, and is silent while there is no page.
//! Changed here: what must hold of a page; the page is written by hand.

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
    let entries = glossary_entries(&page.text);
    if entries > GLOSSARY_MAX {
        let what = format!("{entries} entries in the glossary; it stops at {GLOSSARY_MAX}");
        findings.push(Finding::new(PAGE, 0, what));
    }
    let absent = crates.iter().filter(|member| !page.text.contains(&format!("`{}", member.folder)));
    findings.extend(absent.map(|member| {
        Finding::new(PAGE, 0, format!("does not name `{}` ({})", member.folder, member.name))
    }));
    findings
}

/// How many words in bold the glossary has.
fn glossary_entries(page: &str) -> usize {
    let lines = page.lines().skip_while(|line| *line != "## Glossary").skip(1);
    let text: String = lines.take_while(|line| !line.starts_with('#')).collect();
    text.matches("**").count() / 2
}

const PAGE: &str = "ARCHITECTURE.md";
const LINES_MAX: usize = 300;
/// Most words of the glossary. To become 20: the words that are really ours.
const GLOSSARY_MAX: usize = 20;

#[cfg(test)]
mod tests;
