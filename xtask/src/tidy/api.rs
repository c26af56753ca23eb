//! The public interface of the library: at most 100 items, each named in `lib.rs` and listed in `crates/fanwire/api.txt`.
//! In: the Rust files of the crates, the listing → out: a finding per difference; `cargo xtask api` prints the items.
//! May use the lexer and the lists of `pub use`; never resolves a name as the compiler does. Methods are not listed.
//! Changed here: the kinds of items. `cargo xtask api --write` writes the listing.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::cycles::{leaves, word};
use super::lexer::lex;
use super::{Finding, Source};
use crate::Workspace;
use crate::command::say;

/// Prints the items, or writes them into the listing. Returns whether the listing has them and the limit holds.
///
/// # Errors
/// When the workspace cannot be read, or the listing cannot be written.
pub(crate) fn main(is_written: bool) -> Result<bool> {
    let root = Workspace::find()?.root;
    let rust = super::sources(&root)?;
    let items = items(&rust);
    if is_written {
        fs::write(root.join(LISTING), format!("{}\n", items.join("\n"))).context(LISTING)?;
    }
    items.iter().for_each(|item| say(item));
    let findings = check(&root, &rust);
    findings.iter().for_each(|finding| say(&finding.to_string()));
    say(&format!("api: {} items, {} findings", items.len(), findings.len()));
    Ok(findings.is_empty())
}

/// Compares the interface with the listing.
pub(crate) fn check(root: &Path, rust: &[Source]) -> Vec<Finding> {
    compare(&items(rust), &fs::read_to_string(root.join(LISTING)).unwrap_or_default())
}

fn compare(items: &[String], listing: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for item in items.iter().filter(|item| listing.lines().all(|line| line != **item)) {
        findings.push(Finding::new(LISTING, 0, format!("`{item}` is new; {WRITE}")));
    }
    let is_gone = |(_, line): &(usize, &str)| items.iter().all(|item| item != line);
    for (line, item) in listing.lines().enumerate().filter(is_gone) {
        findings.push(Finding::new(LISTING, line + 1, format!("`{item}` is gone; {WRITE}")));
    }
    for item in items.iter().filter(|item| item.contains('*')) {
        findings.push(Finding::new(LISTING, 0, format!("`{item}`: export each item by its name")));
    }
    if items.len() > ITEMS_MAX {
        let what = format!("{} items; the interface stops at {ITEMS_MAX}", items.len());
        findings.push(Finding::new(LISTING, 0, what));
    }
    findings
}

/// The items of the library in order, each as `fanwire::config::load fn`.
fn items(rust: &[Source]) -> Vec<String> {
    let mut items = Vec::new();
    collect(rust, "lib", LIBRARY, &mut items);
    items.sort();
    items
}

/// Adds the items of the module in `file`, and those of its public modules.
fn collect(rust: &[Source], file: &str, module: &str, items: &mut Vec<String>) {
    let path = format!("{FOLDER}{file}.rs");
    let Some(source) = rust.iter().find(|source| source.path == path) else { return };
    let code = lex(&source.text).code;
    for (at, start) in code.match_indices("\npub ") {
        let rest = &code[at + start.len()..];
        if let Some(tree) = rest.strip_prefix("use ") {
            let tree = tree.split(';').next().unwrap_or_default();
            for (_, name) in leaves(tree) {
                let name = if name.is_empty() { "*" } else { &name };
                items.push(format!("{module}::{name} {}", kind(rust, &word(tree), name)));
            }
        } else if let Some((kind, name)) = definition(rest) {
            let path = format!("{module}::{name}");
            items.push(format!("{path} {kind}"));
            if kind == "mod" {
                let below = if file == "lib" { name } else { format!("{file}/{name}") };
                collect(rust, &below, &path, items);
            }
        }
    }
}

/// The kind of a name that a module or another crate defines. prost generates the structs without a definition.
fn kind(rust: &[Source], home: &str, name: &str) -> &'static str {
    let of_crate = home.strip_prefix("fanwire_").map(|member| format!("crates/{member}/src/"));
    let folder = of_crate.unwrap_or_else(|| FOLDER.to_owned());
    let files = rust.iter().filter(|source| source.path.starts_with(&folder));
    let public =
        files.flat_map(|source| source.text.lines().filter_map(|l| l.strip_prefix("pub ")));
    let mut defined = public.filter_map(definition);
    defined.find(|(_, defined)| defined == name).map_or("struct", |(kind, _)| kind)
}

/// Reads the kind and the name from a definition without its `pub`.
fn definition(text: &str) -> Option<(&'static str, String)> {
    let function = ["const ", "async ", "unsafe "].iter().find_map(|word| text.strip_prefix(word));
    let text = function.filter(|rest| rest.starts_with("fn ")).unwrap_or(text);
    let (keyword, rest) = text.split_once(' ')?;
    let kind = KINDS.iter().find(|kind| **kind == keyword)?;
    Some((kind, word(rest)))
}

const LIBRARY: &str = "fanwire";
const FOLDER: &str = "crates/fanwire/src/";
const LISTING: &str = "crates/fanwire/api.txt";
const ITEMS_MAX: usize = 100;
const KINDS: [&str; 8] = ["struct", "enum", "trait", "fn", "const", "static", "type", "mod"];
const WRITE: &str = "run `cargo xtask api --write` if programs are to see that";

#[cfg(test)]
mod tests;
