//! Texts from outside in log lines: users, channels, reasons, addresses of pages.
//! In: a text of any length with any characters → out: its beginning, printable and in one line.
//! Uses: nothing. Never: decides what is logged.
//! Changed here: the length, and the characters that are escaped.

/// The first [`EXCERPT_CHARS_MAX`] characters of a text, with `…` for the rest. Control characters, and those that
/// change the direction of a line, are written as `\u{1b}`.
pub fn excerpt(text: &str) -> String {
    let mut excerpt = String::with_capacity(text.len().min(EXCERPT_CHARS_MAX));
    let mut chars = text.chars();
    for char in chars.by_ref().take(EXCERPT_CHARS_MAX) {
        if char.is_control() || CHANGES_LINES.contains(&char) {
            excerpt.extend(char.escape_unicode());
        } else {
            excerpt.push(char);
        }
    }
    excerpt.extend(chars.next().map(|_| '…'));
    excerpt
}

/// Line and paragraph separators, marks, embeddings and isolates of Unicode's bidirectional algorithm (UAX 9).
const CHANGES_LINES: [char; 14] = [
    '\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}',
    '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// More than most channels and users have.
const EXCERPT_CHARS_MAX: usize = 128;

#[cfg(test)]
mod tests;
