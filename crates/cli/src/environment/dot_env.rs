//! The syntax of `.env` files, as Centrifugo reads them (godotenv).
//! In: the text of a file → out: its variables, or the line that is none.
//! Uses text alone. Never: the environment of the process.
//! Changed here: quotes, escapes and comments; which file is read is decided in `environment`.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

/// Parses `NAME=value` and `NAME: value`, with `export` in front or not. A value in quotes may have several lines; in double
/// quotes `\n`, `\r` and escaped characters count; in single quotes nothing does. Elsewhere `#` behind a blank begins a
/// comment. `$NAME` and `${NAME}` stand for variables above, but not in single quotes.
///
/// # Errors
/// The number of a line that is no variable, and what is wrong with it.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, String>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut variables = BTreeMap::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|character: char| !character.is_whitespace()) {
        rest = &rest[start..];
        let line = text[..text.len() - rest.len()].matches('\n').count() + 1;
        if rest.starts_with('#') {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        let (name, after) = name(rest, line)?;
        let (value, after) = value(after, name, line, &variables)?;
        variables.insert(name.to_owned(), value);
        rest = after;
    }
    Ok(variables)
}

/// The name at the start, and the text behind its `=` or `:`.
fn name(text: &str, line: usize) -> Result<(&str, &str)> {
    let statement = match text.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest,
        _ => text,
    };
    let first_line = statement.split('\n').next().unwrap_or_default();
    let Some(end) = first_line.find(['=', ':']) else {
        bail!("line {line} has neither = nor :, expected NAME=value");
    };
    let name = first_line[..end].trim();
    let is_name = |character: char| character.is_alphanumeric() || "_.-".contains(character);
    if name.is_empty() || !name.chars().all(is_name) {
        bail!("line {line}: {name:?} is no name of a variable, expected NAME=value");
    }
    Ok((name, statement[end + 1..].trim_start_matches([' ', '\t'])))
}

/// The value at the start, and the text behind it.
fn value<'a>(
    text: &'a str,
    name: &str,
    line: usize,
    variables: &BTreeMap<String, String>,
) -> Result<(String, &'a str)> {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        let end = text.find('\n').unwrap_or(text.len());
        let plain = text[..end].trim_end();
        let comment = plain.match_indices('#').find(|(at, _)| {
            *at == 0 || plain[..*at].ends_with(|before: char| before.is_whitespace())
        });
        let plain = comment.map_or(plain, |(at, _)| plain[..at].trim_end());
        return Ok((expanded(plain, variables), &text[end..]));
    };
    let mut is_escaped = false;
    let end = text[1..].find(|character: char| {
        let ends = character == quote && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends
    });
    let Some(end) = end else {
        bail!("line {line}: the quote that begins the value of {name} is not closed");
    };
    let inner = &text[1..1 + end];
    let after = &text[end + 2..];
    let behind = after.split('\n').next().unwrap_or_default().trim();
    if !behind.is_empty() && !behind.starts_with('#') {
        bail!("line {line}: {behind:?} stands behind the quoted value of {name}");
    }
    let after = after.find('\n').map_or("", |end| &after[end..]);
    match quote {
        '"' => Ok((unescaped(&expanded(inner, variables)), after)),
        _ => Ok((inner.to_owned(), after)),
    }
}

/// Puts variables above in. A `$` behind a backslash stays as both.
fn expanded(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let (inner, is_braced) = match behind.strip_prefix('{') {
            Some(inner) => (inner, true),
            None => (behind, false),
        };
        let is_part = |c: char| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit();
        let length = inner.find(|character| !is_part(character)).unwrap_or(inner.len());
        let is_closed = !is_braced || inner[length..].starts_with('}');
        if length == 0 || !is_closed || out.ends_with('\\') {
            out.push('$');
            rest = behind;
            continue;
        }
        out.push_str(variables.get(&inner[..length]).map_or("", String::as_str));
        rest = &inner[length + usize::from(is_braced)..];
    }
    out.push_str(rest);
    out
}

/// Replaces the escapes of a text in double quotes.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => match characters.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                other => out.extend(other),
            },
            (plain, false) => out.push(plain),
        }
    }
    out
}

#[cfg(test)]
mod tests;
