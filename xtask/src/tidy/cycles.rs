//! Cycles of modules: the modules of a folder, at every depth of a crate, use each other in one direction only.
//! In: the Rust files → out: a finding per folder with a cycle, which shows the shortest one.
//! May use the lexer and read paths (`crate::a`, `super::a`, groups of them); never resolves a name as the compiler does.
//! Changed here: how paths are read; the module of a folder is its root: it may use all in it, and all in it may use its items.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::lexer::{lex, parts};
use super::{Finding, Source};

/// A finding for each folder with a cycle among its files and folders.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    let paths = rust.iter().map(|source| source.path.as_str());
    let found_roots =
        paths.filter_map(|path| ROOTS.iter().find_map(|root| path.strip_suffix(root)));
    let roots: BTreeSet<&str> = found_roots.collect();
    roots.into_iter().flat_map(|root| check_crate(root, rust)).collect()
}

fn check_crate(root: &str, rust: &[Source]) -> Vec<Finding> {
    let modules = modules(root, rust);
    let all_folders = modules.iter().filter_map(|module| module.path.split_last());
    let folders: BTreeSet<&[String]> = all_folders.map(|(_, folder)| folder).collect();
    let findings = folders.into_iter().filter_map(|folder| {
        let uses = uses(folder, &modules);
        let each_cycle =
            uses.keys().filter_map(|(from, _)| Some((from, shortest_cycle(from, &uses)?)));
        let cycles: BTreeMap<&String, Vec<&str>> = each_cycle.collect();
        let shortest = cycles.values().min_by_key(|cycle| cycle.len())?;
        let path = format!("{root}/src/{}", folder.join("/"));
        Some(Finding::new(&path, 0, describe(shortest, cycles.len(), &uses)))
    });
    findings.collect()
}

fn describe(cycle: &[&str], members: usize, uses: &Uses) -> String {
    let arrow = |(at, from): (usize, &&str)| {
        let to = cycle[(at + 1) % cycle.len()];
        format!("{from} → {to} ({})", uses[&((*from).to_owned(), to.to_owned())])
    };
    let arrows: Vec<String> = cycle.iter().enumerate().map(arrow).collect();
    format!("{members} modules are in a cycle, such as {}", arrows.join(", "))
}

/// The pairs of a module and another that it uses, each with the place of the first use.
type Uses = BTreeMap<(String, String), String>;

/// The arrows between the direct children of a folder; those of its own module are none.
fn uses(folder: &[String], modules: &[Module]) -> Uses {
    let child = |path: &[String]| path.strip_prefix(folder)?.first().cloned();
    let children: BTreeSet<String> = modules.iter().filter_map(|it| child(&it.path)).collect();
    let mut uses = Uses::new();
    for module in modules {
        let Some(from) = child(&module.path) else { continue };
        for (place, used) in &module.uses {
            if let Some(to) = child(used).filter(|to| *to != from && children.contains(to)) {
                uses.entry((from.clone(), to)).or_insert_with(|| place.clone());
            }
        }
    }
    uses
}

/// A path from the root of the crate, which itself has the empty one.
type ModulePath = Vec<String>;

/// The paths under which modules export others again, and what these stand for.
type Reexports = BTreeMap<ModulePath, ModulePath>;

/// A file of a crate: its module, and the paths that it names, each with its place.
struct Module {
    path: ModulePath,
    uses: Vec<(String, ModulePath)>,
}

/// The modules of a crate without tests.
fn modules(root: &str, rust: &[Source]) -> Vec<Module> {
    let mut files: Vec<(&Source, ModulePath, String)> = Vec::new();
    for source in rust.iter().filter(|source| !source.is_test()) {
        let Some(file) = source.path.strip_prefix(root) else { continue };
        let Some(inside) = file.strip_prefix("/src/") else { continue };
        let parts = inside.trim_end_matches(".rs").split('/').map(str::to_owned);
        let path = if ROOTS.contains(&file) { Vec::new() } else { parts.collect() };
        files.push((source, path, lex(&source.text).code));
    }
    let mut reexports: Reexports =
        files.iter().flat_map(|(_, path, code)| reexports(path, code)).collect();
    reexports.retain(|name, _| files.iter().all(|(_, path, _)| path != name));
    let module = |(source, path, code): &(&Source, ModulePath, String)| {
        let uses = paths_in(code).into_iter().map(|(at, used)| {
            let line = 1 + code[..at].matches('\n').count();
            (format!("{}:{line}", source.path), defined(from_root(path, &used), path, &reexports))
        });
        Module { path: path.clone(), uses: uses.collect() }
    };
    files.iter().map(module).collect()
}

/// Follows what the modules around `user` export again, down to the module that defines it.
fn defined(mut used: ModulePath, user: &[String], reexports: &Reexports) -> ModulePath {
    let mut depth = 0;
    while depth < used.len() && user.starts_with(&used[..depth]) {
        depth += 1;
        let known = reexports.get(&used[..depth]);
        used = known.map_or_else(|| used.clone(), |path| [path, &used[depth..]].concat());
    }
    used
}

/// The paths that code takes from the root of its crate or from the modules around it, and where.
fn paths_in(code: &str) -> Vec<(usize, ModulePath)> {
    let all_starts = ["crate::", "super::"].into_iter().flat_map(|start| code.match_indices(start));
    let starts = all_starts.filter(|(at, _)| {
        let before = &code[..*at];
        !before.ends_with(|c: char| is_word(c) || c == '$' || c == ':') && !before.ends_with("(in ")
    });
    starts
        .flat_map(|(at, _)| leaves(&code[at..]).into_iter().map(move |leaf| (at, leaf.0)))
        .collect()
}

/// Returns a path that is written in a module as one from the root of the crate.
fn from_root(module: &[String], path: &[String]) -> ModulePath {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let (around, rest) = match path[0].as_str() {
        "crate" => (0, 1),
        "self" => (module.len(), 1),
        _ => (module.len().saturating_sub(ups), ups),
    };
    [&module[..around], &path[rest..]].concat()
}

/// Returns the names that a module has from others, and what they stand for, both from the root.
fn reexports(module: &[String], code: &str) -> Vec<(ModulePath, ModulePath)> {
    let trees = code.match_indices("use ").map(|(at, start)| leaves(&code[at + start.len()..]));
    let from_root = |path: ModulePath| from_root(module, &path);
    trees.flatten().map(|(path, name)| ([module, &[name]].concat(), from_root(path))).collect()
}

/// The paths in a tree of paths, each with the name that it gets: `a::{B, c::D as E}` has `a::B` as B and `a::c::D` as E.
pub(super) fn leaves(tree: &str) -> Vec<(ModulePath, String)> {
    if let Some(group) = tree.strip_prefix('{') {
        return parts(group).into_iter().flat_map(leaves).collect();
    }
    let first = word(tree);
    let rest = &tree[first.len()..];
    let Some(inner) = rest.strip_prefix("::") else {
        let name = rest.strip_prefix(" as ").map_or_else(|| first.clone(), word);
        return vec![(vec![first], name)];
    };
    let below = leaves(inner).into_iter().map(|(path, name)| match name.as_str() {
        "self" => (vec![first.clone()], first.clone()),
        _ => ([std::slice::from_ref(&first), &path].concat(), name),
    });
    below.collect()
}

pub(super) fn word(text: &str) -> String {
    text.chars().take_while(|c| is_word(*c)).collect()
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

const ROOTS: [&str; 2] = ["/src/lib.rs", "/src/main.rs"];

#[cfg(test)]
mod tests;
