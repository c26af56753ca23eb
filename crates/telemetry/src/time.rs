//! Times of RFC 3339: `2030-01-31T12:00:00.123Z`.
//! In: text → out: Unix time.
//! Uses nothing. Never: clocks.
//! Changed here: the grammar. Who reads a time says what an error means.

/// Unix milliseconds of a time; 0 for one before 1970.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
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

#[cfg(test)]
mod tests;
