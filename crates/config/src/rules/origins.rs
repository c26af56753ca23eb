//! Patterns of `client.allowed_origins` that match no page, for example with a slash too many.
//! In: a filled `Config` → out: a remark for each such pattern.
//! Uses text only. Never: checks an origin of a client.
//! The syntax of an origin is checked here (RFC 6454 §6.2); `edge::clients::origin` matches them.

use globset::Glob;

use super::{Config, Remark, RuleResult, Severity};

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

/// A pattern that lets every page connect, also one that a user of this server opens by mistake.
pub(super) fn are_few(config: &Config) -> RuleResult {
    let patterns = &config.client.allowed_origins;
    let everybody = patterns.iter().find(|pattern| EVERYBODY.contains(&pattern.as_str()))?;
    let reason = format!(
        "client.allowed_origins has {everybody:?}, so the page of anybody may connect from the browsers of your users; list \
         the origins of your pages, unless every client sends a token that only these pages have"
    );
    Some((Severity::Note, "client.allowed_origins", reason))
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

const EVERYBODY: [&str; 4] = ["*", "*://*", "http*://*", "https://*"];
