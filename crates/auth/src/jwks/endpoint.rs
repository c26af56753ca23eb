//! The address of a document of keys, with variables that the issuer or audience of a token fills.
//! In: `https://id.example.com/{{tenant}}/keys` once, then values → out: an address, unless it could lead elsewhere.
//! May use: regex-syntax, to see which values a group of a pattern can take. Pure.
//! Changed here: what may stand in an address; which claims fill it, in `verifier.rs`.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, GroupKind};

/// An address in parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endpoint(Vec<Part>);

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    /// Without its braces.
    Variable(String),
}

impl Endpoint {
    /// # Errors
    /// A description of a right value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, behind) = after.split_once("}}").ok_or("every {{ closed by }}")?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Variable(name.trim().to_owned()));
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        let endpoint = Self(parts);
        match endpoint.url(|_| Some("x".to_owned())) {
            Some(url) if has_host(&url) => Ok(endpoint),
            _ => Err("an address such as https://id.example.com/keys".to_owned()),
        }
    }

    /// Checks that each variable of the URL is a named group of `patterns`. With `is_checked` the group must match a
    /// closed list; otherwise a client could choose the key server.
    ///
    /// # Errors
    /// The expectation that is not met.
    pub(super) fn check(&self, patterns: [&str; 2], is_checked: bool) -> Result<(), String> {
        for part in &self.0 {
            let Part::Variable(name) = part else { continue };
            let groups: Vec<bool> =
                patterns.iter().filter_map(|pattern| group(pattern, name)).collect();
            if groups.is_empty() {
                return Err(format!(
                    "each variable to be a named group of issuer_regex or audience_regex, such as (?P<{name}>one|two)"
                ));
            }
            if is_checked && groups.contains(&false) {
                return Err(format!(
                    "the group {name} to list the values it takes, such as (?P<{name}>one|two)"
                ));
            }
        }
        Ok(())
    }

    /// The address for the values of the variables. `None` when one is missing, has characters other than letters, digits
    /// and `-._~` (RFC 3986 §2.3), or makes a step like `..` in the path.
    pub(super) fn url(&self, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        let mut url = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => url.push_str(text),
                Part::Variable(name) => {
                    let value = value(name).filter(|value| !value.is_empty())?;
                    url.push_str(value.chars().all(is_unreserved).then_some(&value)?);
                }
            }
        }
        let path = url.split(['?', '#']).next().unwrap_or_default().replace("%2e", ".");
        let is_step = |segment: &str| matches!(segment, "." | "..");
        (!path.replace("%2E", ".").split(['/', '\\']).any(is_step)).then_some(url)
    }
}

fn is_unreserved(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~".contains(c)
}

/// Whether it is http or https with a host and without characters that no address has.
fn has_host(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !host.contains('@') && url.bytes().all(|byte| byte.is_ascii_graphic())
    })
}

/// Whether the group `name` of a pattern takes listed values only; `None` when there is no such group.
fn group(pattern: &str, name: &str) -> Option<bool> {
    let ast = Parser::new().parse(pattern).ok()?;
    find(&ast, name)
}

fn find(ast: &Ast, name: &str) -> Option<bool> {
    match ast {
        Ast::Group(group) => match &group.kind {
            GroupKind::CaptureName { name: own, .. } if own.name == name => {
                Some(is_listed(&group.ast))
            }
            _ => find(&group.ast, name),
        },
        Ast::Concat(concat) => concat.asts.iter().find_map(|inner| find(inner, name)),
        Ast::Alternation(choice) => choice.asts.iter().find_map(|inner| find(inner, name)),
        Ast::Repetition(repetition) => find(&repetition.ast, name),
        _ => None,
    }
}

/// Whether this part of a pattern is a text, or a choice among texts.
fn is_listed(ast: &Ast) -> bool {
    match ast {
        Ast::Literal(literal) => is_unreserved(literal.c),
        Ast::Concat(concat) => concat.asts.iter().all(is_listed),
        Ast::Alternation(choice) => choice.asts.iter().all(is_listed),
        Ast::Group(group) => is_listed(&group.ast),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
