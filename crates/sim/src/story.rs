//! What happened, line by line: a hash of all of it, and the lines themselves if somebody wants to read them.
//! In: events with who is concerned → out: a hash, the lines about a client or channel.
//! Uses: formatted text. Never: decides anything.
//! Changed here: the form of a line.

use std::fmt::{self, Write as _};
use std::time::Duration;

/// The events of a run.
pub struct Story {
    hash: u64,
    line: String,
    /// `None`: only the hash is wanted.
    lines: Option<Vec<String>>,
}

impl Story {
    pub fn new(keeps_lines: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, line: String::new(), lines: keeps_lines.then(Vec::new) }
    }

    /// Adds an event.
    pub fn tell(&mut self, now: Duration, text: fmt::Arguments<'_>) {
        self.line.clear();
        let written = write!(self.line, "{:>10.4} {text}", now.as_secs_f64());
        written.expect("a String takes any text");
        for byte in self.line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3); // FNV-1a
        }
        if let Some(lines) = &mut self.lines {
            lines.push(self.line.clone());
        }
    }

    /// A hash of all events.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The lines that name one of these words, and those about faults.
    pub fn lines_about(&self, words: &[String]) -> Vec<&str> {
        let lines = self.lines.iter().flatten().map(String::as_str);
        let is_wanted = |line: &&str| {
            line.contains(" fault ")
                || line.contains(" backend commands ")
                || line.contains(" backend hears ")
                || words.iter().any(|word| has_word(line, word))
        };
        lines.filter(is_wanted).collect()
    }
}

/// Whether a line has a word, not as the beginning of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    line.split([' ', ',']).any(|one| one == word)
}
