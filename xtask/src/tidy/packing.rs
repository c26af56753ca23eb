//! Packed statements: how often code presses two steps into one, or gives two things one name.
//! In: the Rust files without tests → out: a finding per shape that is more, or less, frequent than its row says.
//! May use the lexer and rustfmt's layout; never judges whether the values of a tuple belong together.
//! Changed here: the shapes, and the table `CEILINGS`, whose counts only ever become smaller.

use std::collections::BTreeMap;

use super::lexer::{lex, outside_brackets, parts};
use super::{Finding, Source};

/// Compares the frequency of each shape with its ceiling.
pub(crate) fn check(rust: &[Source]) -> Vec<Finding> {
    check_with(rust, CEILINGS)
}

fn check_with(rust: &[Source], ceilings: &[Ceiling]) -> Vec<Finding> {
    let counted = rust.iter().filter(|it| !it.is_test() && !it.path.starts_with("fuzz/"));
    let files: Vec<_> = counted.map(|it| (owner(&it.path), lex(&it.text).code)).collect();
    ceilings.iter().filter_map(|row| compare(row, &files)).collect()
}

fn compare(row: &Ceiling, files: &[(String, String)]) -> Option<Finding> {
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    for (owner, code) in files {
        *owners.entry(owner).or_default() += (row.count)(code);
    }
    let sum: usize = owners.values().sum();
    if sum == row.most {
        return None;
    }
    owners.retain(|_, count| *count > 0);
    let advice = if sum > row.most { "unpack the new one" } else { "lower the number" };
    let what = format!("{}: {sum}, not {}: {advice} {owners:?}", row.shape, row.most);
    Some(Finding::new(HERE, 0, what))
}

/// The folder that a count is shown for: `crates/ws`, `xtask/src`.
fn owner(path: &str) -> String {
    path.split('/').take(2).collect::<Vec<_>>().join("/")
}

/// `let (a, b) = (f(x), g(y));`, also with `else`.
fn tuple_lets(code: &str) -> usize {
    lets(code).filter(|it| it.pattern.starts_with('(') && is_tuple(it.value)).count()
}

/// `let (a, b) = Default::default();`
fn default_tuples(code: &str) -> usize {
    let tuples = lets(code).filter(|it| it.pattern.starts_with('('));
    tuples.filter(|it| it.value == "Default::default()").count()
}

/// Parameters of functions that are a tuple, or a reference to one.
fn tuple_parameters(code: &str) -> usize {
    let heads = code.match_indices("fn ").filter_map(|(at, _)| code[at..].split_once('('));
    heads.flat_map(|(_, list)| parts(list)).filter(|parameter| has_tuple_type(parameter)).count()
}

/// Names that the next statement binds again.
fn bound_again(code: &str) -> usize {
    lets(code).filter(|it| next(it).is_some()).count()
}

/// Names that three statements in a row bind.
fn bound_thrice(code: &str) -> usize {
    lets(code).filter(|it| next(it).is_some_and(|second| next(&second).is_some())).count()
}

/// A `let` statement: its pattern with the type, its value up to the semicolon, and the code behind it.
struct Let<'a> {
    pattern: &'a str,
    value: &'a str,
    rest: &'a str,
}

impl Let<'_> {
    /// The one name of the pattern.
    fn name(&self) -> Option<&str> {
        let pattern = self.pattern.strip_prefix("mut ").unwrap_or(self.pattern);
        let name = pattern.split(':').next().unwrap_or(pattern);
        let is_name = name != "_" && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_name.then_some(name)
    }
}

/// The `let` statements of code; not the conditions of `if let` and `while let`.
fn lets(code: &str) -> impl Iterator<Item = Let<'_>> {
    let words = code.match_indices("let ").map(|(at, _)| code.split_at(at));
    let starts = words.filter(|(before, _)| before.trim_end_matches(' ').ends_with('\n'));
    starts.filter_map(|(_, statement)| read_let(statement))
}

/// Reads the statement at the front of `code`.
fn read_let(code: &str) -> Option<Let<'_>> {
    let statement = code.strip_prefix("let ")?;
    let end = outside_brackets(statement, &[';'])?;
    let (pattern, value) = statement[..end].split_once('=')?;
    let rest = statement[end + 1..].trim_start();
    Some(Let { pattern: pattern.trim(), value: value.trim(), rest })
}

/// The next statement, if it binds the same name.
fn next<'a>(binding: &Let<'a>) -> Option<Let<'a>> {
    let next = read_let(binding.rest)?;
    let is_same = binding.name().is_some() && binding.name() == next.name();
    is_same.then_some(next)
}

/// Whether a value, a pattern or a type is a tuple as it stands, not a call on an expression in brackets.
fn is_tuple(text: &str) -> bool {
    let Some(inside) = text.strip_prefix('(') else { return false };
    let Some(end) = outside_brackets(inside, &[')']) else { return false };
    let after = inside[end + 1..].trim_start();
    let is_whole = after.is_empty() || after.starts_with("else");
    is_whole && parts(inside).len() > 1
}

/// Whether a parameter is a tuple: `(a, b): Pair`, `pair: &(A, B)`.
fn has_tuple_type(parameter: &str) -> bool {
    let Some((pattern, kind)) = parameter.split_once(": ") else { return false };
    is_tuple(pattern) || is_tuple(kind.trim_start_matches('&').trim_start_matches("mut "))
}

/// A shape of statements, and how often it may stand in the workspace.
struct Ceiling {
    shape: &'static str,
    count: fn(&str) -> usize,
    most: usize,
}

const HERE: &str = "xtask/src/tidy/packing.rs";

const CEILINGS: &[Ceiling] = &[
    Ceiling { shape: "`let` with a tuple of values", count: tuple_lets, most: 17 },
    Ceiling { shape: "tuple as a parameter", count: tuple_parameters, most: 0 },
    Ceiling { shape: "`let (…) = Default::default()`", count: default_tuples, most: 5 },
    Ceiling { shape: "name bound again in the next statement", count: bound_again, most: 102 },
    Ceiling { shape: "name bound three times in a row", count: bound_thrice, most: 12 },
];

#[cfg(test)]
mod tests;
