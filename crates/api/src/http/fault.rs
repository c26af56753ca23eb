//! What is wrong with a body, for whoever wrote it: which value, what was expected, at which line and column.
//! In: the text of a body and the error of its parser. Out: one line of text.
//! Pure. Never: repeats more than the beginning of what was sent.
//! The words are changed here; the status and the first words in `door`.

use std::fmt::Write as _;

use serde_json::Error;

/// `commands[3].publish.channel: invalid type: integer 1, expected a string at line 1 column 42`. Reads the body once more,
/// up to the fault.
pub(super) fn told(body: &str, error: &Error) -> String {
    let (line, column) = (error.line(), error.column());
    let place = format!(" at line {line} column {column}");
    let said = error.to_string();
    // Without a line it is about the whole body.
    let (what, place) = match said.strip_suffix(&place) {
        Some(what) => (what, place.as_str()),
        None => (said.as_str(), ""),
    };
    let path = path(read_until(body, line, column));
    let path = shortened(&path);
    let separator = if path.is_empty() { "" } else { ": " };
    format!("{path}{separator}{}{place}", shortened(what))
}

/// What the parser had read before the byte that it stumbled over; it counts lines and bytes of a line from 1.
fn read_until(body: &str, line: usize, column: usize) -> &[u8] {
    let start: usize = body.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    &body.as_bytes()[..body.len().min(start + column.saturating_sub(1))]
}

/// Where in objects and lists the end of a text is: `commands[3].publish`.
fn path(read: &[u8]) -> String {
    let mut steps: Vec<Step> = Vec::new();
    let mut depth = 0;
    let mut index = 0;
    while let Some(byte) = read.get(index) {
        let innermost = steps.last_mut().filter(|_| depth <= STEPS_MAX);
        match (byte, innermost) {
            (b'{', _) => open(&mut steps, &mut depth, Step::Key(None)),
            (b'[', _) => open(&mut steps, &mut depth, Step::Item(0)),
            (b'}' | b']', _) => {
                steps.truncate(depth.saturating_sub(1));
                depth = depth.saturating_sub(1);
            }
            (b',', Some(Step::Item(number))) => *number += 1,
            (b',', Some(step)) => *step = Step::Key(None),
            (b'"', innermost) => {
                let text = string(&read[index + 1..]);
                index += text.len() + 1;
                if let Some(Step::Key(key @ None)) = innermost {
                    *key = Some(text);
                }
            }
            _ => {}
        }
        index += 1;
    }
    written(&steps)
}

/// Goes into an object or a list; what lies too deep is counted only.
fn open<'a>(steps: &mut Vec<Step<'a>>, depth: &mut usize, step: Step<'a>) {
    if *depth < STEPS_MAX {
        steps.push(step);
    }
    *depth += 1;
}

/// What stands in front of the closing quote.
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

fn written(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Item(number) => {
                let _ = write!(path, "[{number}]");
            }
            Step::Key(Some(key)) => {
                let dot = if path.is_empty() { "" } else { "." };
                let _ = write!(path, "{dot}{}", String::from_utf8_lossy(key));
            }
            Step::Key(None) => {}
        }
    }
    path
}

/// The beginning, where there is much, in one line.
fn shortened(text: &str) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut beginning: String = chars.by_ref().take(CHARS_MAX).collect();
    beginning.extend(chars.next().map(|_| '…'));
    beginning
}

/// A step into an object or a list.
#[derive(Clone, Copy)]
enum Step<'a> {
    /// The key last read, as it was written.
    Key(Option<&'a [u8]>),
    /// The number of the item, from 0.
    Item(usize),
}

/// Deeper than any request; payloads may be deeper.
const STEPS_MAX: usize = 16;

const CHARS_MAX: usize = 120;

#[cfg(test)]
mod tests;
