//! Lifetimes of streams: a window that reads and writes restart, or a fixed time (RFC 3339).
//! In: texts of headers, Unix times → out: lifetimes, and when a stream expires.
//! Pure. Never: the clock.
//! Changed here: the grammar of both headers.

use fanwire_telemetry::time::parse_rfc3339;

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

const NOT_A_TIME: &str =
    "Stream-Expires-At is not a time of RFC 3339, such as 2030-01-31T12:00:00Z";

#[cfg(test)]
mod tests;
