//! The origin check of real-time endpoints, as Centrifugo does it (`client.allowed_origins`).
//! In: the `Origin` header and the configured patterns → out: allowed or not.
//! Uses nothing; never looks at other headers.
//! Changed here: the meaning of a pattern. `admission` applies the check.

/// Whether a request with this `Origin` is allowed. A request without the header always is; otherwise one pattern must match
/// the whole origin, ignoring letter case. `*` in a pattern matches any run of characters; an empty list allows no origin.
pub(super) fn is_allowed(origin: Option<&str>, patterns: &[String]) -> bool {
    let Some(origin) = origin else { return true };
    let origin = origin.to_ascii_lowercase();
    patterns.iter().any(|pattern| matches(&pattern.to_ascii_lowercase(), &origin))
}

fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    fn check(origin: Option<&str>, patterns: &[&str], expect: bool) {
        let patterns: Vec<String> = patterns.iter().map(|pattern| pattern.to_string()).collect();
        assert_eq!(is_allowed(origin, &patterns), expect, "{origin:?} against {patterns:?}");
    }

    #[test]
    fn a_request_without_origin_is_always_allowed() {
        check(None, &[], true);
        check(None, &["https://example.com"], true);
    }

    #[test]
    fn a_pattern_must_match_the_whole_origin() {
        check(Some("https://example.com"), &[], false);
        check(Some("https://example.com"), &["https://example.com"], true);
        check(Some("https://EXAMPLE.com"), &["https://example.COM"], true);
        check(Some("https://example.com.evil.org"), &["https://example.com"], false);
        check(Some("https://example.com:8443"), &["https://example.com"], false);
        check(Some("null"), &["https://*"], false);
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        check(Some("https://anything"), &["*"], true);
        check(Some("https://chat.example.com"), &["https://*.example.com"], true);
        check(Some("https://example.com"), &["https://*.example.com"], false);
        check(Some("http://localhost:3000"), &["http://localhost:*"], true);
        check(Some("https://a.b.c"), &["https://a*b*c"], true);
        check(Some("https://ac"), &["https://a*c*c"], false);
    }
}
