//! Offsets of streams: the position of a channel as an opaque text whose order is that of the stream.
//! In: positions, texts of clients → out: texts, positions, or nothing for what is no offset.
//! Pure. Never: streams.
//! Changed here: the grammar of an offset.

use fanwire_broker::{Epoch, Position};

/// The place where a read begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadStart {
    /// `-1`, or no offset.
    Beginning,
    /// `now`
    Tail,
    At(Position),
}

impl ReadStart {
    /// Parses `-1`, `now`, or a text of [`format`]. Number 0 is the beginning, in any epoch.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "-1" => return Some(Self::Beginning),
            "now" => return Some(Self::Tail),
            _ => {}
        }
        let (number, epoch) = text.split_once('_')?;
        let is_number = number.len() == DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
        let offset = number.parse().ok().filter(|_| is_number)?;
        if offset == 0 && is_word(epoch) {
            return Some(Self::Beginning);
        }
        let epoch = Epoch::parse(epoch).filter(|epoch| *epoch != Epoch::NONE)?;
        Some(Self::At(Position { offset, epoch }))
    }
}

/// Writes an offset: 16 digits, `_`, the epoch. Later positions of an epoch compare greater as texts.
pub(crate) fn format(position: Position) -> String {
    let Position { offset, epoch } = position;
    format!("{offset:0DIGITS$}_{}", epoch.as_str())
}

fn is_word(text: &str) -> bool {
    (1..=DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

const DIGITS: usize = 16;

#[cfg(test)]
mod tests;
