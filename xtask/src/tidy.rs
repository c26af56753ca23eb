//! The rules of the workspace that a program can check; `cargo xtask tidy` runs them all.
//! In: the workspace's files and `cargo metadata` → out: one line per finding, `path:line: what is wrong`.
//! May use `lexer` for Rust text; never changes a file and never builds anything.
//! A rule is a module below with its table on top; the list of rules is `findings`.

pub(crate) mod api;
mod arrows;
mod cards;
mod chance;
mod citations;
mod cycles;
mod inherited;
mod lexer;
mod locks;
mod merges;
mod methods;
mod nevers;
mod packing;
mod pages;
mod prose;
mod sizes;
mod times;
mod types;
mod words;

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::Workspace;
use crate::command::say;
pub(crate) use arrows::pure as pure_crates;

/// Runs every check and prints what it found; `true` when there is nothing.
///
/// # Errors
/// When the workspace cannot be read.
pub(crate) fn main() -> Result<bool> {
    let workspace = Workspace::find()?;
    let findings = findings(&workspace)?;
    for finding in &findings {
        say(&finding.to_string());
    }
    say(&format!("tidy: {} findings", findings.len()));
    Ok(findings.is_empty())
}

/// One broken rule. `line` counts from 1; 0 means the whole file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) what: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// A text file of the workspace: its path from the root with `/`, and what stands in it.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Test code: a `tests.rs`, or anything below a `tests` folder.
    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.split('/').any(|part| part == "tests")
    }
}

/// Every broken rule, sorted.
fn findings(workspace: &Workspace) -> Result<Vec<Finding>> {
    let sources = sources(&workspace.root)?;
    let rust: Vec<Source> = sources.iter().filter(|source| source.is_rust()).cloned().collect();
    let crates = arrows::crates(&workspace.root)?;
    let mut findings = arrows::check(&crates);
    findings.extend(cards::check(&rust));
    findings.extend(sizes::check(&rust));
    findings.extend(words::check(&sources));
    findings.extend(times::check(&rust));
    findings.extend(cycles::check(&rust));
    findings.extend(nevers::check(&rust));
    findings.extend(chance::check(&rust));
    findings.extend(types::check(&rust));
    findings.extend(methods::check(&rust));
    findings.extend(packing::check(&rust));
    findings.extend(prose::check(&sources));
    findings.extend(pages::check(&sources, &crates));
    findings.extend(locks::check(&sources));
    findings.extend(citations::check(&sources));
    findings.extend(inherited::check(&sources));
    findings.extend(api::check(&workspace.root, &rust));
    findings.extend(merges::check(&workspace.root, &sources));
    findings.sort();
    Ok(findings)
}

/// Every text file below the folders that the rules cover, in a stable order.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for page in PAGES.iter().filter(|page| root.join(page).is_file()) {
        sources
            .push(Source { path: (*page).to_owned(), text: fs::read_to_string(root.join(page))? });
    }
    for folder in ["crates", "bench", "xtask", "tests", "fuzz", "docs"] {
        gather(root, folder, &mut sources)?;
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn gather(root: &Path, folder: &str, into: &mut Vec<Source>) -> Result<()> {
    let Ok(entries) = fs::read_dir(root.join(folder)) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if entry.file_type()?.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                gather(root, &path, into)?;
            }
        } else if COVERED_ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            let text =
                fs::read_to_string(entry.path()).with_context(|| format!("reading {path}"))?;
            into.push(Source { path, text });
        }
    }
    Ok(())
}

const SKIPPED_FOLDERS: &[&str] = &["target", "node_modules", "__pycache__", "corpus", "artifacts"];
const COVERED_ENDINGS: &[&str] = &[
    ".rs",
    ".js",
    ".py",
    ".md",
    "Cargo.toml",
    "package-lock.json",
    "requirements.txt",
    "6455.txt",
    "7692.txt",
];
const PAGES: &[&str] =
    &["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.toml", "README.md"];
