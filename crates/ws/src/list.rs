//! Lists in HTTP header values (RFC 9110 §5.6.1), separated by commas or semicolons.
//! A header value → its trimmed elements, quoted strings left whole.
//! Uses nothing; never allocates; never checks the meaning of an element.
//! Changed here: the syntax of lists. The meaning of elements is `handshake` and `extension`.

/// The elements of `value` between `separator`s outside quoted strings (RFC 9110 §5.6.4).
///
/// Elements are trimmed; empty ones are kept, for they are not allowed in every list.
pub(crate) fn split(value: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    value
        .split(move |character: char| {
            let literal = std::mem::take(&mut escaped);
            match character {
                '\\' if quoted && !literal => escaped = true,
                '"' if !literal => quoted = !quoted,
                _ => return !quoted && character == separator,
            }
            false
        })
        .map(trim)
}

/// Whether a comma-separated list has `token`, whatever its case.
pub(crate) fn has_token(value: &str, token: &str) -> bool {
    split(value, ',').any(|element| element.eq_ignore_ascii_case(token))
}

/// Without the spaces and tabs around it, the only whitespace of a header value (RFC 9110 §5.6.3).
pub(crate) fn trim(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests;
