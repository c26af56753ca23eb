//! The fields of a certificate that an operator is warned about: its names and its dates (RFC 5280 §4.1).
//! In: a certificate in DER → out: subject and issuer as bytes, begin and end in seconds since 1970.
//! Uses nothing; rustls verifies certificates of others, and does not say when our own one ends.
//! Changed here: which fields are read.

/// Some fields of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields<'a> {
    pub issuer: &'a [u8],
    pub subject: &'a [u8],
    pub begin: Date,
    pub end: Date,
}

/// A second, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// Since 1970.
    pub seconds: u64,
    year: u64,
    month: u64,
    day: u64,
}

impl<'a> Fields<'a> {
    /// `None` for bytes that are no certificate, and for dates before 1970.
    pub fn of(der: &'a [u8]) -> Option<Self> {
        let (certificate, _) = element(der, SEQUENCE)?;
        let (mut rest, _) = element(certificate, SEQUENCE)?;
        if rest.first() == Some(&VERSION) {
            (_, rest) = element(rest, VERSION)?;
        }
        (_, rest) = element(rest, INTEGER)?; // serial number
        (_, rest) = element(rest, SEQUENCE)?; // algorithm of the signature
        let (issuer, rest) = element(rest, SEQUENCE)?;
        let (validity, rest) = element(rest, SEQUENCE)?;
        let (subject, _) = element(rest, SEQUENCE)?;
        let (begin, end) = date(validity)?;
        let (end, _) = date(end)?;
        Some(Self { issuer, subject, begin, end })
    }
}

/// The content of the first element, which has this tag, and what follows it (X.690 §8.1).
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, bytes) = bytes.split_first()?;
    let (&first, bytes) = bytes.split_first()?;
    let (length, bytes) = match first {
        0..=0x7f => (usize::from(first), bytes),
        0x81..=0x84 => {
            let (length, bytes) = bytes.split_at_checked(usize::from(first - 0x80))?;
            (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), bytes)
        }
        _ => return None,
    };
    if found == tag { bytes.split_at_checked(length) } else { None }
}

/// A date in one of the two forms, and what follows it (RFC 5280 §4.1.2.5).
fn date(bytes: &[u8]) -> Option<(Date, &[u8])> {
    let (text, is_short, rest) = match *bytes.first()? {
        UTC_TIME => element(bytes, UTC_TIME).map(|(text, rest)| (text, true, rest))?,
        _ => element(bytes, GENERALIZED_TIME).map(|(text, rest)| (text, false, rest))?,
    };
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest_of_text) = text.split_at_checked(if is_short { 2 } else { 4 })?;
    let year = match year.parse().ok()? {
        year @ 0..50 if is_short => 2000 + year,
        year if is_short => 1900 + year,
        year => year,
    };
    let part = |at: usize| rest_of_text.get(at..at + 2)?.parse::<u64>().ok();
    let [month, day, hour, minute, second] = [part(0)?, part(2)?, part(4)?, part(6)?, part(8)?];
    if rest_of_text.len() != 10 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = days_since_1970(year, month, day)? * 86_400 + hour * 3600 + minute * 60 + second;
    Some((Date { seconds, year, month, day }, rest))
}

/// Counts from March, so that the day of a leap year is the last one.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1;
    days.checked_sub(DAYS_FROM_MARCH_0_TO_1970)
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { year, month, day, .. } = self;
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

const DAYS_FROM_MARCH_0_TO_1970: u64 = 719_468;

const INTEGER: u8 = 0x02;

const UTC_TIME: u8 = 0x17;

const GENERALIZED_TIME: u8 = 0x18;

const SEQUENCE: u8 = 0x30;

/// Absent in version 1.
const VERSION: u8 = 0xa0;

#[cfg(test)]
mod tests;
