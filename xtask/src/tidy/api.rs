//! The public interface of the library: at most 87 items, each named in `lib.rs` and listed in `crates/fanwire/api.txt`.
//! In: the Rust files of the crates, the listing → out: a finding per difference; `cargo xtask api` prints the items.
//! May use the lexer and the lists of `pub use`; never resolves a name as the compiler does, and knows no generated fields.
//! Changed here: the kinds of items. `cargo xtask api --write` writes the listing.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::cycles::{leaves, word};
use super::lexer::{lex, outside_brackets};
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
    say(&format!("api: {} items, {} findings", count(&items), findings.len()));
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
    for item in items.iter().filter(|item| item.contains("::* ")) {
        findings.push(Finding::new(LISTING, 0, format!("`{item}`: export each item by its name")));
    }
    if count(items) > ITEMS_MAX {
        let what = format!("{} items; the interface stops at {ITEMS_MAX}", count(items));
        findings.push(Finding::new(LISTING, 0, what));
    }
    findings
}

/// The number of items; their members, which are indented, do not count.
fn count(items: &[String]) -> usize {
    items.iter().filter(|item| !item.starts_with(' ')).count()
}

/// The items of the library in order, each as `fanwire::config::load fn`, and behind each its members.
fn items(rust: &[Source]) -> Vec<String> {
    let mut items = Vec::new();
    collect(rust, "lib", LIBRARY, &mut items);
    items.sort();
    let lines = |item: Item| std::iter::once(item.line).chain(item.members);
    items.into_iter().flat_map(lines).collect()
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    line: String,
    /// Public fields, variants, methods and constants.
    members: Vec<String>,
}

/// Adds the items of the module in `file`, and those of its public modules.
fn collect(rust: &[Source], file: &str, module: &str, items: &mut Vec<Item>) {
    let path = format!("{FOLDER}{file}.rs");
    let Some(source) = rust.iter().find(|source| source.path == path) else { return };
    let code = lex(&source.text).code;
    for (at, start) in code.match_indices("\npub ") {
        let rest = &code[at + start.len()..];
        if let Some(tree) = rest.strip_prefix("use ") {
            let tree = tree.split(';').next().unwrap_or_default();
            for (_, name) in leaves(tree) {
                let name = if name.is_empty() { "*" } else { &name };
                let home = home(&word(tree));
                let line = format!("{module}::{name} {}", kind(rust, &home, name));
                let members = members(rust, &home, name, &format!("{module}::{name}"));
                items.push(Item { line, members });
            }
        } else if let Some((kind, name)) = definition(rest) {
            let path = format!("{module}::{name}");
            let line = format!("{path} {kind}");
            items.push(Item { line, members: members(rust, FOLDER, &name, &path) });
            if kind == "mod" {
                let below = if file == "lib" { name } else { format!("{file}/{name}") };
                collect(rust, &below, &path, items);
            }
        }
    }
}

/// The folder of the crate that a list of `pub use` begins with.
fn home(first: &str) -> String {
    let of_crate = first.strip_prefix("fanwire_").map(|member| format!("crates/{member}/src/"));
    of_crate.unwrap_or_else(|| FOLDER.to_owned())
}

/// The public members of a type, in order, each as `  fanwire::Server pub fn address(&self) -> SocketAddr`.
fn members(rust: &[Source], folder: &str, name: &str, path: &str) -> Vec<String> {
    let files = rust.iter().filter(|it| it.path.starts_with(folder) && !it.is_test());
    let code: Vec<_> = files.map(|source| lex(&source.text).code).collect();
    let mut members: Vec<_> = code.iter().flat_map(|code| members_in(code, name)).collect();
    members.sort();
    members.iter().map(|member| format!("  {path} {member}")).collect()
}

/// Reads the members out of the definition of a type and its inherent `impl` blocks, by rustfmt's layout.
fn members_in(code: &str, name: &str) -> Vec<String> {
    let mut members = Vec::new();
    for block in code.split("\n}\n") {
        let begins = |keyword: &str| {
            let start = block.rfind(&format!("\n{keyword}"))?;
            block[start..].split_once(" {\n")
        };
        for keyword in ["pub struct ", "pub enum ", "pub trait ", "impl"] {
            let Some((head, body)) = begins(keyword) else { continue };
            if subject(head, keyword) != name || head.contains(" for ") {
                continue;
            }
            let is_public = keyword == "pub enum " || keyword == "pub trait ";
            members.extend(declarations(body).filter(|it| is_public || it.starts_with("pub ")));
        }
    }
    members
}

/// The type that the head of a definition or an `impl` is about.
fn subject(head: &str, keyword: &str) -> String {
    let rest = head.trim_start().strip_prefix(keyword.trim_end()).unwrap_or_default();
    let generics_end =
        if rest.starts_with('<') { rest.find("> ").map_or(0, |at| at + 2) } else { 0 };
    word(rest[generics_end..].trim_start())
}

/// The declarations one level inside of a block, each in one line and without a body.
fn declarations(body: &str) -> impl Iterator<Item = String> {
    let starts =
        body.match_indices("    ").filter(|(at, _)| *at == 0 || body[..*at].ends_with('\n'));
    let texts = starts.map(|(at, indent)| &body[at + indent.len()..]);
    texts.filter(|text| text.starts_with(|c: char| c.is_alphabetic())).map(|text| {
        let is_function = text.lines().next().is_some_and(|line| line.contains("fn "));
        let ends: &[char] = if is_function { &['{', ';'] } else { &['{', ';', '=', '\n'] };
        let end = outside_brackets(text, ends).unwrap_or(text.len());
        let declaration = text[..end].split_whitespace().collect::<Vec<_>>().join(" ");
        declaration.trim_end_matches(',').replace("#[from] ", "") // thiserror's
    })
}

/// The kind of a name that a module or another crate defines. prost generates the structs without a definition.
fn kind(rust: &[Source], folder: &str, name: &str) -> &'static str {
    let files = rust.iter().filter(|source| source.path.starts_with(folder));
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
const ITEMS_MAX: usize = 87;
const KINDS: [&str; 8] = ["struct", "enum", "trait", "fn", "const", "static", "type", "mod"];
const WRITE: &str = "run `cargo xtask api --write` if programs are to see that";

#[cfg(test)]
mod tests;
