//! Decimal numbers as texts, compared exactly and without allocating: tags contain prices, ids and versions of any length.
//! In: `[+-]DIGITS[.DIGITS]` → out: an order. No exponents, no spaces, digits on both sides of the point.
//! Uses: nothing. Never: floating point, in which 0.1 + 0.2 is not 0.3 and long ids are equal.
//! Changed here: the syntax of a number.

use std::cmp::Ordering;

/// A number inside its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal<'a> {
    /// False for zero.
    is_negative: bool,
    /// Digits before the point, without leading zeros.
    whole: &'a str,
    /// Digits after the point, without trailing zeros.
    fraction: &'a str,
}

impl<'a> Decimal<'a> {
    /// `None` when the text is not a number.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (has_minus, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (digits, None),
        };
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        if !is_digits(whole) || !fraction.is_none_or(is_digits) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.unwrap_or_default().trim_end_matches('0');
        let is_zero = whole.is_empty() && fraction.is_empty();
        Some(Self { is_negative: has_minus && !is_zero, whole, fraction })
    }

    /// The magnitude: more digits before the point are more, and equally many compare like texts.
    fn size(&self) -> (usize, &'a str, &'a str) {
        (self.whole.len(), self.whole, self.fraction)
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (false, false) => self.size().cmp(&other.size()),
            (true, true) => other.size().cmp(&self.size()),
            (is_negative, _) => other.is_negative.cmp(&is_negative),
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests;
