//! The origin check of real-time endpoints, as Centrifugo does it (`client.allowed_origins`).
//! In: the `Origin` header and the configured patterns → out: allowed or not.
//! Uses globset; never looks at other headers.
//! Changed here: the meaning of a pattern. `admission` applies the check.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns that are compiled: `*` matches any run of characters, `?` one, `[0-9]` and `[!a]` one of a set, `{a,b}` one of
/// several texts.
#[derive(Debug)]
pub struct AllowedOrigins(GlobSet);

impl AllowedOrigins {
    /// Compiles patterns; one that is no pattern matches nothing, and `check-config` reports it.
    pub fn new(patterns: &[String]) -> Self {
        let glob = |pattern: &String| GlobBuilder::new(pattern).case_insensitive(true).build().ok();
        let mut set = GlobSetBuilder::new();
        for glob in patterns.iter().filter_map(glob) {
            set.add(glob);
        }
        Self(set.build().unwrap_or_default())
    }

    /// Whether a request with this `Origin` is allowed. A request without the header always is; otherwise one pattern must
    /// match the whole origin, ignoring letter case; an empty list allows no origin.
    pub(super) fn allow(&self, origin: Option<&str>) -> bool {
        origin.is_none_or(|origin| self.0.is_match(origin))
    }
}

#[cfg(test)]
mod tests {
    use super::AllowedOrigins;

    fn check(origin: Option<&str>, patterns: &[&str], expect: bool) {
        let patterns: Vec<String> = patterns.iter().map(|pattern| pattern.to_string()).collect();
        let allows = AllowedOrigins::new(&patterns).allow(origin);
        assert_eq!(allows, expect, "{origin:?} against {patterns:?}");
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
    #[test]
    fn sets_alternatives_and_single_characters_are_patterns() {
        check(Some("https://a1.example.com"), &["https://a?.example.com"], true);
        check(Some("https://a.example.com"), &["https://a?.example.com"], false);
        check(Some("http://localhost:3001"), &["http://localhost:300[0-9]"], true);
        check(Some("http://localhost:300x"), &["http://localhost:300[0-9]"], false);
        check(Some("https://b.example"), &["https://{a,b}.example"], true);
        check(Some("https://c.example"), &["https://[!ab].example"], true);
        check(Some("https://a.example"), &["https://[", "https://a.example"], true);
    }
}
