//! Glob patterns for channel names (server API §3 channels).
//! In: a pattern from the API → out: a matcher whose time is linear in the name for every pattern.
//! Uses: `regex`, which has no backtracking. Never: file system rules; `*` matches every character.
//! Changed here: the syntax of a pattern.

use regex::{Regex, RegexBuilder, escape};

/// A compiled pattern: `*` any text, `?` one character, `[a-z]` and `[!a-z]` classes, `{a,b}` alternatives, `\` escapes.
///
/// globset 0.4 is made for paths: `?` and `[!a]` match one byte of `ä` there, `a/**/b` matches `a/b`, and `a}` is no pattern.
pub struct Glob(Option<Regex>);

impl Glob {
    /// `None` for an invalid pattern or one longer than [`PATTERN_BYTES_MAX`]. "" matches everything.
    pub fn new(pattern: &str) -> Option<Self> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return None;
        }
        if pattern.is_empty() {
            return Some(Self(None));
        }
        let expression = format!("^(?:{})$", translate(pattern)?);
        let mut builder = RegexBuilder::new(&expression);
        builder.dot_matches_new_line(true).size_limit(COMPILED_BYTES_MAX);
        builder.build().ok().map(|regex| Self(Some(regex)))
    }

    pub fn matches(&self, channel: &str) -> bool {
        self.0.as_ref().is_none_or(|regex| regex.is_match(channel))
    }
}

/// The regular expression for a pattern, character by character.
fn translate(pattern: &str) -> Option<String> {
    let mut expression = String::new();
    let mut depth = 0usize;
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        match character {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' => class(&mut rest, &mut expression)?,
            '{' => {
                depth += 1;
                expression.push_str("(?:");
            }
            ',' if depth > 0 => expression.push('|'),
            '}' if depth > 0 => {
                depth -= 1;
                expression.push(')');
            }
            '\\' => literal(rest.next()?, &mut expression),
            other => literal(other, &mut expression),
        }
    }
    (depth == 0).then_some(expression)
}

/// A character class up to its `]`; special are only `!` or `^` in front and `-` between two characters.
fn class(rest: &mut std::str::Chars<'_>, expression: &mut String) -> Option<()> {
    expression.push('[');
    let mut first = true;
    loop {
        match rest.next()? {
            '!' | '^' if first => expression.push('^'),
            ']' => break,
            '-' => expression.push('-'),
            '\\' => class_literal(rest.next()?, expression),
            other => class_literal(other, expression),
        }
        first = false;
    }
    expression.push(']');
    Some(())
}

fn literal(character: char, expression: &mut String) {
    expression.push_str(&escape(character.encode_utf8(&mut [0; 4])));
}

/// Every ASCII sign is escaped, so that `&&`, `~~` and `[` are literals.
fn class_literal(character: char, expression: &mut String) {
    if character.is_ascii_punctuation() {
        expression.push('\\');
    }
    expression.push(character);
}

/// Longest pattern.
const PATTERN_BYTES_MAX: usize = 1024;
/// Memory of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

#[cfg(test)]
mod tests;
