//! Methods of types: none has more than 50, in all inherent impls of its crate together.
//! In: the Rust files of `crates` without tests → out: a finding per type with more methods, with their number.
//! May use the lexer and rustfmt's layout; never counts methods of traits, nor what only tests are built with.
//! A type that has too many is cut where its state is: into types that it holds, or functions over what they need.

use std::collections::BTreeMap;

use super::lexer::{functions, lex};
use super::types::member;
use super::{Finding, Source};

/// Finds types with too many methods.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    let mut types: BTreeMap<(&str, String), (usize, &str)> = BTreeMap::new();
    for source in rust.iter().filter(|source| !source.is_test() && !is_for_tests(&source.path)) {
        let Some(member) = member(&source.path) else { continue };
        for (name, methods) in impls(&lex(&source.text).code) {
            let (count, path) = types.entry((member, name)).or_insert((0, &source.path));
            *count += methods;
            *path = (*path).min(&source.path);
        }
    }
    types.retain(|_, (methods, _)| *methods > METHODS_MAX);
    let finding = |((_, name), (methods, path)): (&(&str, String), &(usize, &str))| {
        let what = format!("`{name}` has {methods} methods; a type stops at {METHODS_MAX}");
        Finding::new(path, 0, what)
    };
    types.iter().map(finding).collect()
}

/// Files of the features `testing` and `fuzzing`.
fn is_for_tests(path: &str) -> bool {
    path.ends_with("/testing.rs") || path.contains("/fuzzing")
}

/// The inherent impls of code: the type of each, and its number of methods.
fn impls(code: &str) -> Vec<(String, usize)> {
    let mut impls = Vec::new();
    let starts = code.match_indices("\nimpl").map(|(at, _)| at + 1);
    for start in starts.chain(code.starts_with("impl").then_some(0)) {
        let rest = &code[start..];
        let Some(open) = rest.find('{') else { continue };
        let Some(name) = self_type(&rest["impl".len()..open]) else { continue };
        // rustfmt closes an impl in the first column, and indents its methods once.
        let end = rest.find("\n}").unwrap_or(rest.len());
        let body = rest.get(open..end).unwrap_or_default();
        let is_own = |line: &str| line.starts_with("    ") && !line.starts_with("     ");
        let lines: Vec<&str> = body.lines().collect();
        let own = functions(body).into_iter().filter(|function| is_own(lines[function.line - 1]));
        impls.push((name, own.count()));
    }
    impls
}

/// The type in the head of an inherent impl, as ` Hub` or `<'a> Turn<'a>`; `None` for one of a trait.
fn self_type(head: &str) -> Option<String> {
    let mut depth = 0_usize;
    let after_parameters = if head.starts_with('<') {
        head.find(|c| {
            depth = match c {
                '<' => depth + 1,
                '>' => depth - 1,
                _ => depth,
            };
            depth == 0
        })? + 1
    } else {
        0
    };
    let named = head[after_parameters..].split(" where").next()?.trim();
    if named.contains(" for ") {
        return None;
    }
    let name = named.split('<').next()?.rsplit("::").next()?;
    Some(name.trim().to_owned())
}

const METHODS_MAX: usize = 50;

#[cfg(test)]
mod tests;
