//! Collects a text message that arrives in pieces, failing at the first byte that cannot be UTF-8
//! (RFC 6455 §8.1). Pieces of text, cut anywhere → a `String`, each byte checked once.
//! Uses nothing; never keeps more than the text and three bytes of an unfinished character.
//! Changed here: incremental UTF-8. The pieces come from `reader`.

use crate::Failure;

/// The text so far.
#[derive(Debug, Default)]
pub(crate) struct Text {
    whole: String,
    /// The beginning of a character whose end has not arrived, `started_bytes` of it.
    started: [u8; 4],
    started_bytes: usize,
}

impl Text {
    /// Appends `piece`.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Failure> {
        let piece = self.continue_character(piece)?;
        let (whole, started) = piece.split_at(piece.len() - unfinished_bytes(piece));
        self.whole.push_str(str::from_utf8(whole).map_err(|_| Failure::TextNotUtf8)?);
        if !started.is_empty() {
            self.started[..started.len()].copy_from_slice(started);
            self.started_bytes = started.len();
            self.check_started()?;
        }
        Ok(())
    }

    /// Ends the message.
    pub(crate) fn finish(self) -> Result<String, Failure> {
        if self.started_bytes == 0 { Ok(self.whole) } else { Err(Failure::TextNotUtf8) }
    }

    /// The text so far with the beginning of an unfinished character.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.whole.as_bytes(), &self.started[..self.started_bytes]].concat()
    }

    #[cfg(test)]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.whole.capacity()
    }

    /// Completes the started character, if there is one, and returns the bytes behind it.
    fn continue_character<'a>(&mut self, piece: &'a [u8]) -> Result<&'a [u8], Failure> {
        let mut rest = piece;
        while self.started_bytes > 0 {
            let Some((&byte, behind)) = rest.split_first() else { break };
            rest = behind;
            self.started[self.started_bytes] = byte;
            self.started_bytes += 1;
            self.check_started()?;
        }
        Ok(rest)
    }

    /// Moves the started character to the text once it is complete.
    fn check_started(&mut self) -> Result<(), Failure> {
        match str::from_utf8(&self.started[..self.started_bytes]) {
            Ok(character) => {
                self.whole.push_str(character);
                self.started_bytes = 0;
                Ok(())
            }
            // No error length: more bytes can still complete the character.
            Err(error) if error.error_len().is_none() => Ok(()),
            Err(_) => Err(Failure::TextNotUtf8),
        }
    }
}

/// The number of bytes at the end of `piece` that may begin a character which the next piece ends.
///
/// They start at the last leading byte, if it is among the last three: a character has at most four.
fn unfinished_bytes(piece: &[u8]) -> usize {
    let last = &piece[piece.len().saturating_sub(3)..];
    last.iter().rposition(|byte| *byte >= 0xc0).map_or(0, |start| last.len() - start)
}

#[cfg(test)]
mod tests;
