//! Patterns of `client.allowed_origins` that match no page, for example with a slash too many.
//! In: a filled `Config` → out: a remark for each such pattern.
//! Uses text only. Never: checks an origin of a client.
//! The syntax of an origin is checked here (RFC 6454 §6.2); `edge::clients::origin` matches them.

use globset::Glob;

use super::{Config, Remark, Severity};

pub(super) fn are_origins(config: &Config) -> Vec<Remark> {
    let patterns = config.client.allowed_origins.iter();
    let remark = |pattern: &String| {
        let reason = format!(
            "client.allowed_origins has {pattern:?}, which is the origin of no page: expected a scheme, :// and a host, \
             perhaps with a port, and nothing behind; several are a list, with spaces between them in a variable"
        );
        (Severity::Warning, "client.allowed_origins", reason)
    };
    patterns.filter(|pattern| !is_possible(pattern)).map(remark).collect()
}

/// Whether some origin may match: `scheme://host:port`, or `null`.
fn is_possible(pattern: &str) -> bool {
    if Glob::new(pattern).is_err() {
        return false;
    }
    let (scheme, host) = match pattern.split_once("://") {
        Some((scheme, host)) => (scheme, host),
        None if pattern.contains('*') => ("", pattern),
        None => return pattern.eq_ignore_ascii_case("null"),
    };
    let text = format!("{scheme}{host}");
    // Commas separate alternatives in braces.
    let has_list = text.contains(',') && !text.contains('{');
    !has_list && !text.contains(['/', ';', '"', '\'', ' '])
}
