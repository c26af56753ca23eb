//! What happened: a hash of all events, and lines about them if somebody wants to read them.
//! In: events with their times, lines with who is concerned → out: a hash, the lines about a client or channel.
//! Uses: formatted text, only if lines are kept. Never: decides anything.
//! Changed here: the form of a line, the hash function.

use std::fmt;
use std::hash::Hasher;
use std::time::Duration;

use serde_json::Value;

/// The events of a run.
pub struct Story {
    hash: EventHash,
    /// `None`: only the hash is wanted.
    lines: Option<Vec<String>>,
    /// States of the world, for a page.
    pub(crate) samples: Vec<Value>,
}

/// A hash function that is the same in every process, build and machine: eight bytes at a time are mixed as in FNV.
#[derive(Clone, Copy, Debug)]
pub struct EventHash(u64);

impl Story {
    pub fn new(keeps_lines: bool) -> Self {
        Self { hash: EventHash::default(), lines: keeps_lines.then(Vec::new), samples: Vec::new() }
    }

    /// Adds a line.
    pub fn tell(&mut self, now: Duration, text: fmt::Arguments<'_>) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>10.4} {text}", now.as_secs_f64()));
        }
    }

    pub fn keeps_lines(&self) -> bool {
        self.lines.is_some()
    }

    /// Where events add what they are.
    pub fn hasher(&mut self) -> &mut EventHash {
        &mut self.hash
    }

    /// A hash of all events.
    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// The lines without what happens all the time.
    pub fn lines_to_look_at(&self) -> Vec<&str> {
        let is_common = |line: &&str| COMMON.iter().any(|word| line.contains(word));
        let lines = self.lines.iter().flatten().map(String::as_str);
        lines.filter(|line| !is_common(line)).collect()
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

impl Default for EventHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for EventHash {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Whether a line has a word, not as the beginning of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    line.split([' ', ',']).any(|one| one == word)
}

/// Words of lines that a page leaves out.
const COMMON: [&str; 6] =
    [" receives ", " Published ", " Called ", " Joined ", " Parted ", " backend publishes "];
