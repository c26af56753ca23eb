//! Durations in the syntax of Go's time.ParseDuration: `300ms`, `25s`, `1m30s`, `1.5h`.
//! In: text → out: a duration, or an error; and back into the shortest such text.
//! Uses nothing. Never: clocks, limits.
//! A unit is added in `UNITS`; the limits of a key live in its row.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotADuration {
    /// Not numbers with units, or beyond 2⁶⁴ nanoseconds.
    Malformed,
    /// Written correctly, below zero.
    Negative,
}

/// Reads one or more numbers with units; `0` needs no unit.
///
/// # Errors
/// [`NotADuration`]
pub fn parse(text: &str) -> Result<Duration, NotADuration> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    if let Some(rest) = text.strip_prefix('-') {
        let meant = rest == "1" || parse(rest).is_ok();
        return Err(if meant { NotADuration::Negative } else { NotADuration::Malformed });
    }
    let mut nanos = 0u64;
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = part(rest).ok_or(NotADuration::Malformed)?;
        nanos = nanos.checked_add(part).ok_or(NotADuration::Malformed)?;
        rest = after;
    }
    if text.is_empty() { Err(NotADuration::Malformed) } else { Ok(Duration::from_nanos(nanos)) }
}

/// Writes a duration with the largest units that divide it: `1m30s`, `250ms`, `0s`.
pub fn format(duration: Duration) -> String {
    let mut nanos = duration.as_nanos();
    let mut text = String::new();
    for (unit, size) in UNITS.iter().filter(|(unit, _)| *unit != "µs") {
        let count = nanos / u128::from(*size);
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
            nanos %= u128::from(*size);
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// One number with its unit in nanoseconds, and the rest of the text.
fn part(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at(digits);
    let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let size = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    whole.checked_mul(size)?.checked_add(fraction_nanos(fraction, size)?).map(|nanos| (nanos, rest))
}

/// The digits after the point, as nanoseconds, cut below one.
fn fraction_nanos(digits: &str, size: u64) -> Option<u64> {
    let mut nanos = 0;
    let mut place = size;
    for digit in digits.chars() {
        place /= 10;
        nanos += u64::from(digit.to_digit(10)?) * place;
    }
    Some(nanos)
}

/// Units by size in nanoseconds, largest first.
const UNITS: [(&str, u64); 7] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];
