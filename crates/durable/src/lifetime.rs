//! Lifetimes of streams: a window that reads and writes restart, or a fixed time (RFC 3339).
//! In: texts of headers, Unix times → out: lifetimes, and when a stream expires.
//! Pure. Never: the clock.
//! Changed here: the grammar of both headers.

/// How long a stream exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StreamLifetime {
    Unlimited,
    /// Seconds since the last read or write.
    Window(u64),
    /// Fixed.
    Until {
        /// As the client wrote it.
        text: String,
        unix_ms: u64,
    },
}

impl StreamLifetime {
    /// Parses `Stream-TTL` and `Stream-Expires-At`.
    ///
    /// # Errors
    /// A text for the sender.
    pub(crate) fn parse(ttl: Option<&str>, until: Option<&str>) -> Result<Self, &'static str> {
        match (ttl, until) {
            (None, None) => Ok(Self::Unlimited),
            (Some(_), Some(_)) => Err("send Stream-TTL or Stream-Expires-At, not both"),
            (Some(ttl), None) => {
                let is_plain = ttl == "0"
                    || !ttl.starts_with('0') && ttl.bytes().all(|byte| byte.is_ascii_digit());
                let seconds = ttl.parse().ok().filter(|_| is_plain);
                seconds.map(Self::Window).ok_or("Stream-TTL is not a number of seconds")
            }
            (None, Some(text)) => {
                let unix_ms = parse_rfc3339(text).ok_or(NOT_A_TIME)?;
                Ok(Self::Until { text: text.to_owned(), unix_ms })
            }
        }
    }

    /// When a stream that was used last at `used_ms` expires.
    pub(crate) fn expires_at_ms(&self, used_ms: u64) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Window(seconds) => Some(used_ms.saturating_add(seconds.saturating_mul(1000))),
            Self::Until { unix_ms, .. } => Some(*unix_ms),
        }
    }

    /// Whether two requests ask for the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Until { unix_ms, .. }, Self::Until { unix_ms: other, .. }) => unix_ms == other,
            (own, other) => own == other,
        }
    }
}

/// Unix milliseconds of a time; 0 for one before 1970.
fn parse_rfc3339(text: &str) -> Option<u64> {
    let number = |part: &str| {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| is_number)
    };
    let field = |from: usize, to: usize, before: &str| {
        let is_separated = from == 0 || before.contains(text.get(from - 1..from)?);
        number(text.get(from..to)?).filter(|_| is_separated)
    };
    let (year, month, day) = (field(0, 4, "")?, field(5, 7, "-")?, field(8, 10, "-")?);
    let (hour, minute, second) = (field(11, 13, "Tt ")?, field(14, 16, ":")?, field(17, 19, ":")?);
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(digits) => digits.split_at(digits.find(|c: char| !c.is_ascii_digit())?),
        None => ("", rest),
    };
    let milliseconds = match fraction {
        "" if rest.starts_with('.') => return None,
        digits => number(&format!("{digits:0<3}")[..3])?,
    };
    let zone_minutes = match zone {
        "Z" | "z" => 0,
        zone => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
            if (hours.len(), minutes.len()) != (2, 2) {
                return None;
            }
            sign * (number(hours)? * 60 + number(minutes)?)
        }
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let days_of_month = *days.get(usize::try_from(month - 1).ok()?)?;
    if !(1..=days_of_month).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days_of_year: i64 = days[..(month - 1) as usize].iter().sum::<i64>() + day - 1;
    let before = year - 1;
    let days = before * 365 + before / 4 - before / 100 + before / 400 + days_of_year - 719_162;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - zone_minutes * 60;
    u64::try_from((seconds * 1000 + milliseconds).max(0)).ok()
}

const NOT_A_TIME: &str =
    "Stream-Expires-At is not a time of RFC 3339, such as 2030-01-31T12:00:00Z";

#[cfg(test)]
mod tests;
