//! Reads the payload of a close frame (RFC 6455 §5.5.1, §7.4).
//! Payload → code and reason, or a `Failure`.
//! Uses nothing; never decides what we answer.
//! Changed here: which codes a client may send.

use crate::Failure;

/// The code and reason of a close frame (RFC 6455 §5.5.1a); `None` for an empty payload.
pub(crate) fn parse(payload: &[u8]) -> Result<Option<(u16, &str)>, Failure> {
    if payload.is_empty() {
        return Ok(None);
    }
    let (code, reason) = payload.split_first_chunk().ok_or(Failure::CloseTooShort)?;
    let code = u16::from_be_bytes(*code);
    if !may_be_sent(code) {
        return Err(Failure::CloseCode { code });
    }
    let reason = str::from_utf8(reason).map_err(|_| Failure::CloseReasonNotUtf8)?;
    Ok(Some((code, reason)))
}

/// Whether `code` may stand in a close frame: RFC 6455 §7.4.1 and the IANA registry (1012–1014),
/// and the ranges for libraries and applications (§7.4.2). 1004 is reserved; 1005, 1006 and 1015
/// stand for the absence of a close frame.
fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
mod tests;
