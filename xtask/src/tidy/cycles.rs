//! Cycles of modules inside a crate: the direct children of a crate root use each other in one direction only.
//! In: the Rust files → out: a finding per crate with a cycle, which shows the shortest one.
//! May use the lexer and read paths (`crate::a`, `super::a`, groups of them); never resolves a name as the compiler does.
//! How paths are read is changed here; a crate root may use all of its modules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::lexer::lex;
use super::{Finding, Source};

/// A finding for each crate with a cycle; its path is the crate's folder.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    let roots = rust.iter().filter_map(|source| {
        source.path.strip_suffix("/src/lib.rs").or_else(|| source.path.strip_suffix("/src/main.rs"))
    });
    let folders: BTreeSet<&str> = roots.collect();
    let found = folders.into_iter().filter_map(|folder| {
        let uses = uses(folder, rust);
        let modules: BTreeSet<&String> = uses.keys().map(|(from, _)| from).collect();
        let cycles: Vec<Vec<&str>> =
            modules.into_iter().filter_map(|module| shortest_cycle(module, &uses)).collect();
        let shortest = cycles.iter().min_by_key(|cycle| cycle.len())?;
        Some(Finding::new(folder, 0, describe(shortest, cycles.len(), &uses)))
    });
    found.collect()
}

fn describe(cycle: &[&str], members: usize, uses: &Uses) -> String {
    let arrow = |(at, from): (usize, &&str)| {
        let to = cycle[(at + 1) % cycle.len()];
        format!("{from} → {to} ({})", uses[&((*from).to_owned(), to.to_owned())])
    };
    let arrows: Vec<String> = cycle.iter().enumerate().map(arrow).collect();
    format!("{members} modules are in a cycle, such as {}", arrows.join(", "))
}

/// Which module uses which other, and where it does so first.
type Uses = BTreeMap<(String, String), String>;

/// The arrows between the direct children of the crate in `folder`, without tests.
fn uses(folder: &str, rust: &[Source]) -> Uses {
    let inside = format!("{folder}/src/");
    let files =
        || rust.iter().filter(|source| source.path.starts_with(&inside) && !source.is_test());
    let module = |source: &Source| {
        let parts: Vec<&str> =
            source.path[inside.len()..].trim_end_matches(".rs").split('/').collect();
        (parts[0].to_owned(), parts.len())
    };
    let children: BTreeSet<String> = files().map(|source| module(source).0).collect();
    let root =
        files().filter(|source| ["lib.rs", "main.rs"].contains(&&source.path[inside.len()..]));
    let names: BTreeMap<String, String> =
        root.flat_map(|root| reexports(&lex(&root.text).code)).collect();
    let mut uses = Uses::new();
    for source in files() {
        let (from, depth) = module(source);
        let code = lex(&source.text).code;
        for (at, name) in names_of_root(&code, depth) {
            let to = names.get(&name).unwrap_or(&name);
            if *to != from && children.contains(to) && !IS_ROOT.contains(&from.as_str()) {
                let line = 1 + code[..at].matches('\n').count();
                let place = || format!("{}:{line}", source.path);
                uses.entry((from.clone(), to.clone())).or_insert_with(place);
            }
        }
    }
    uses
}

/// The names that code in a module so deep below the root takes from the root, and where.
fn names_of_root(code: &str, depth: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if !code[..at].ends_with(|c: char| is_word(c) || c == '$' || c == '(') {
            found.extend(heads(&code[at + "crate::".len()..]).into_iter().map(|head| (at, head)));
        }
    }
    let up = "super::".repeat(depth);
    for (at, _) in code.match_indices(&up) {
        if !code[..at].ends_with(|c: char| is_word(c) || c == ':') {
            found.extend(heads(&code[at + up.len()..]).into_iter().map(|head| (at, head)));
        }
    }
    found
}

/// The first names of a path or of a group of paths: `a::B` gives a, `{a::B, c::{D, E}}` gives a and c.
fn heads(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else { return vec![word(path)] };
    parts(group).into_iter().map(word).collect()
}

/// Returns the texts between the commas of a group, up to its end.
fn parts(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(group[start..at].trim());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(group[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Returns the names that a root exports from its modules: the name by which it is known, and the module.
fn reexports(root: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in root.match_indices("use ") {
        let path =
            root[at + "use ".len()..].trim_start_matches("crate::").trim_start_matches("self::");
        let Some((path, _)) = path.split_once(';') else { continue };
        let module = word(path);
        found.extend(leaves(path).into_iter().map(|leaf| (leaf, module.clone())));
    }
    found
}

/// The last names of a tree of paths, or those after `as`.
fn leaves(path: &str) -> Vec<String> {
    match path.split_once('{') {
        Some((_, group)) => parts(group).into_iter().flat_map(leaves).collect(),
        None => path.rsplit([':', ' ']).next().map(word).into_iter().collect(),
    }
}

fn word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| is_word(*c)).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The shortest way from a module back to itself.
fn shortest_cycle<'a>(module: &'a str, uses: &'a Uses) -> Option<Vec<&'a str>> {
    let mut ways = VecDeque::from([vec![module]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let last = way[way.len() - 1];
        for (_, to) in uses.keys().filter(|(from, _)| from == last) {
            if to == module {
                return Some(way);
            }
            if seen.insert(to.as_str()) {
                ways.push_back([&way[..], &[to]].concat());
            }
        }
    }
    None
}

/// A crate root may use all of its modules.
const IS_ROOT: [&str; 2] = ["lib", "main"];

#[cfg(test)]
mod tests;
