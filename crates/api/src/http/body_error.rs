//! Error texts for invalid bodies: the field, the expected type, line and column.
//! In: the text of a body and the error of its parser. Out: one line of text.
//! Pure. Never: repeats more than the beginning of the body's values.
//! Changed here: the text; the status and the first words in `request`.

use std::fmt::Write as _;

use serde_json::Error;

/// Describes an error, as in `commands[3].publish.channel: invalid type: integer 1, expected a string at line 1 column 42`.
/// Reads the body again up to the error.
pub(super) fn describe(body: &str, error: &Error) -> String {
    let line = error.line();
    let column = error.column();
    let position = format!(" at line {line} column {column}");
    let text = error.to_string();
    // An error without a line concerns the whole body.
    let (what, position) = match text.strip_suffix(&position) {
        Some(what) => (what, position.as_str()),
        None => (text.as_str(), ""),
    };
    let path = path(read_until(body, line, column));
    let path = shortened(&path);
    let separator = if path.is_empty() { "" } else { ": " };
    format!("{path}{separator}{}{position}", shortened(what))
}

/// The bytes that the parser had read before the error; it counts lines, and bytes of a line, from 1.
fn read_until(body: &str, line: usize, column: usize) -> &[u8] {
    let start: usize = body.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    &body.as_bytes()[..body.len().min(start + column.saturating_sub(1))]
}

/// The path of the end of a text in its objects and lists: `commands[3].publish`.
fn path(read: &[u8]) -> String {
    let mut steps: Vec<PathStep> = Vec::new();
    let mut depth = 0;
    let mut index = 0;
    while let Some(byte) = read.get(index) {
        let innermost = steps.last_mut().filter(|_| depth <= STEPS_MAX);
        match (byte, innermost) {
            (b'{', _) => open(&mut steps, &mut depth, PathStep::Key(None)),
            (b'[', _) => open(&mut steps, &mut depth, PathStep::Item(0)),
            (b'}' | b']', _) => {
                steps.truncate(depth.saturating_sub(1));
                depth = depth.saturating_sub(1);
            }
            (b',', Some(PathStep::Item(number))) => *number += 1,
            (b',', Some(step)) => *step = PathStep::Key(None),
            (b'"', innermost) => {
                let text = string(&read[index + 1..]);
                index += text.len() + 1;
                if let Some(PathStep::Key(key @ None)) = innermost {
                    *key = Some(text);
                }
            }
            _ => {}
        }
        index += 1;
    }
    written(&steps)
}

/// Enters an object or a list; below `STEPS_MAX` levels only the depth is counted.
fn open<'a>(steps: &mut Vec<PathStep<'a>>, depth: &mut usize, step: PathStep<'a>) {
    if *depth < STEPS_MAX {
        steps.push(step);
    }
    *depth += 1;
}

/// The text before the closing quote.
fn string(rest: &[u8]) -> &[u8] {
    let mut is_escaped = false;
    let end = rest.iter().position(|byte| match (is_escaped, byte) {
        (false, b'"') => true,
        (escaped, byte) => {
            is_escaped = !escaped && *byte == b'\\';
            false
        }
    });
    &rest[..end.unwrap_or(rest.len())]
}

fn written(steps: &[PathStep]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            PathStep::Item(number) => {
                let _ = write!(path, "[{number}]");
            }
            PathStep::Key(Some(key)) => {
                let dot = if path.is_empty() { "" } else { "." };
                let _ = write!(path, "{dot}{}", String::from_utf8_lossy(key));
            }
            PathStep::Key(None) => {}
        }
    }
    path
}

/// Returns the beginning of a text: at most `CHARS_MAX` characters, in one line.
fn shortened(text: &str) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut beginning: String = chars.by_ref().take(CHARS_MAX).collect();
    beginning.extend(chars.next().map(|_| '…'));
    beginning
}

/// A step into an object or a list.
#[derive(Clone, Copy)]
enum PathStep<'a> {
    /// The key read last, not unescaped.
    Key(Option<&'a [u8]>),
    /// The index of the item, from 0.
    Item(usize),
}

/// Deeper than any request except its payloads.
const STEPS_MAX: usize = 16;

const CHARS_MAX: usize = 120;

#[cfg(test)]
mod tests;
